"""Objects as JSON and arrays, without pickle."""

from skmc.serialization.classes import register
from skmc.serialization.packer import Packer, StorageError, Unpacker, attributes
