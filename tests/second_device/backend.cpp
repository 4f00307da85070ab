// A device for tests, with the manners of a GPU and the arithmetic of the CPU.
//
// PyTorch reserves the name PrivateUse1 for a device of someone else. This one has two
// cards, whose memory is memory of the host. Each operation on it is done by PyTorch's
// kernel for the CPU, on tensors that share that memory. As on a GPU, a tensor of the CPU
// or of the other card beside one of a card is an error, unless it is a single number.
// What a GPU would have to wait for is counted, and memory can be limited.
//
// The order is that in which PyTorch calls it: memory, the current card, making and
// copying tensors, and then every other operation.

// Only the operations that are used: half the time of the compiler.
#define AT_PER_OPERATOR_HEADERS
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_local_scalar_dense_cpu_dispatch.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/_sparse_csr_tensor_unsafe.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/set_cpu_dispatch.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

using at::Tensor;
using c10::Device;
using c10::DeviceIndex;
using c10::IValue;

namespace {

constexpr auto OURS = c10::DeviceType::PrivateUse1;
constexpr DeviceIndex CARDS = 2;

bool is_ours(const Tensor& tensor) { return tensor.device().type() == OURS; }

// ------------------------------------------------------------------ what is counted

// "calls" and "call:<operation>"; "waits" and "wait:<operation>", whose answer the host has
// to wait for; the copies "from host" and "to host"; and "double", matrices in double
// precision.
std::map<std::string, int64_t> counts;
std::mutex counts_lock;  // the backward pass runs in a thread of each card

void count(const std::string& what) {
  std::lock_guard<std::mutex> guard(counts_lock);
  ++counts[what];
}

void count_wait(const std::string& operation) {
  count("waits");
  count("wait:" + operation);
}

// ---------------------------------------------------------------------------- memory

thread_local DeviceIndex current = 0;  // card of the calling thread

Device card(DeviceIndex index) { return Device(OURS, index < 0 ? current : index); }

struct Block {
  void* begin;
  size_t size;
};

std::atomic<size_t> in_use{0};
std::atomic<size_t> peak{0};
std::atomic<size_t> limit{std::numeric_limits<size_t>::max()};

void release(void* context) {
  auto* block = static_cast<Block*>(context);
  in_use -= block->size;
  std::free(block->begin);
  delete block;
}

struct Memory final : c10::Allocator {
  c10::DataPtr allocate(size_t size) override {
    TORCH_CHECK_WITH(
        OutOfMemoryError, in_use + size <= limit, "second device out of memory. Tried to ",
        "allocate ", size, " bytes; ", in_use.load(), " of ", limit.load(), " are in use.");
    void* begin = nullptr;
    if (size && posix_memalign(&begin, 64, size)) throw std::bad_alloc();
    in_use += size;
    if (in_use > peak) peak = in_use.load();
    return {begin, new Block{begin, size}, &release, card(current)};
  }
  void copy_data(void* to, const void* from, size_t size) const override {
    std::memcpy(to, from, size);
  }
};

Memory memory;
REGISTER_ALLOCATOR(OURS, &memory)

// ------------------------------------------------------------------ the current card

// There are no queues of work: every operation has ended when it returns.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return OURS; }
  DeviceIndex deviceCount() const noexcept override { return CARDS; }
  Device getDevice() const override { return card(current); }
  void uncheckedSetDevice(Device device) const noexcept override {
    if (device.index() >= 0) current = device.index();
  }
  void setDevice(Device device) const override {
    TORCH_CHECK(device.index() < CARDS, "there is no card ", device);
    uncheckedSetDevice(device);
  }
  Device exchangeDevice(Device device) const override {
    Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Stream getStream(Device device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, card(device.index()));
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    return getStream(stream.device());
  }
  void record(void**, const c10::Stream&, const DeviceIndex, const c10::EventFlag)
      const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const DeviceIndex) const noexcept override {}
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

// What is made in this scope is made on one card.
struct OnCard {
  DeviceIndex before = current;
  explicit OnCard(Device device) { Guard().setDevice(device); }
  ~OnCard() { current = before; }
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t size) const override {
    OnCard here(storage.device());
    at::native::resize_bytes_cpu(storage.unsafeGetStorageImpl(), size);
  }
};

Hooks hooks;

// ------------------------------------------------------------ making and seeing again

Tensor empty(
    at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
    std::optional<Device> device, std::optional<bool>,
    std::optional<at::MemoryFormat> format) {
  OnCard here(device.value_or(card(current)));
  return at::detail::empty_generic(
      size, &memory, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      c10::dtype_or_default(dtype), format);
}

Tensor empty_strided(
    at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
    std::optional<at::Layout>, std::optional<Device> device, std::optional<bool>) {
  OnCard here(device.value_or(card(current)));
  return at::detail::empty_strided_generic(
      size, stride, &memory, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      c10::dtype_or_default(dtype));
}

const Tensor& resize(
    const Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat> format) {
  OnCard here(self.device());
  auto* tensor = self.unsafeGetTensorImpl();
  at::native::resize_impl_cpu_(tensor, size, std::nullopt);
  if (format) tensor->empty_tensor_restride(*format);
  return self;
}

Tensor as_strided(
    const Tensor& self, at::IntArrayRef size, at::IntArrayRef stride,
    std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}

Tensor view(const Tensor& self, c10::SymIntArrayRef size) {
  return at::native::view(self, C10_AS_INTARRAYREF_SLOW(size));
}

Tensor reshape_alias(const Tensor& self, at::IntArrayRef size, at::IntArrayRef stride) {
  return at::native::_reshape_alias(self, size, stride);
}

Tensor& set_strided(
    Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef size,
    at::IntArrayRef stride) {
  return at::cpu::set_(self, source, offset, size, stride);
}

Tensor& set_storage(Tensor& self, at::Storage source) {
  int64_t length = source.nbytes() / self.dtype().itemsize();
  return at::cpu::set_(self, source, 0, {length}, {1});
}

// --------------------------------------------------- the same tensor, seen by the CPU

// A tensor of the CPU in the same memory. Sparse ones consist of three such tensors.
Tensor on_cpu(const Tensor& tensor) {
  if (!tensor.defined() || !is_ours(tensor)) return tensor;
  if (tensor.layout() == at::kSparseCsr) {
    auto* parts = at::sparse_csr::get_sparse_csr_impl(tensor);
    return at::_sparse_csr_tensor_unsafe(
        on_cpu(parts->compressed_indices()), on_cpu(parts->plain_indices()),
        on_cpu(parts->values()), tensor.sizes(),
        at::dtype(tensor.scalar_type()).layout(at::kSparseCsr).device(at::kCPU));
  }
  const c10::Storage& storage = tensor.storage();
  c10::Storage borrowed(
      c10::Storage::use_byte_size_t{}, storage.nbytes(),
      c10::DataPtr(storage.mutable_data(), at::kCPU), c10::GetCPUAllocator(),
      /*resizable=*/true);
  Tensor seen = at::empty({0}, at::dtype(tensor.scalar_type()).device(at::kCPU));
  seen.set_(borrowed, tensor.storage_offset(), tensor.sizes(), tensor.strides());
  return seen;
}

// A result of the CPU, moved to a card.
Tensor on_card(const Tensor& tensor, Device device) {
  if (!tensor.defined() || !tensor.device().is_cpu()) return tensor;
  if (tensor.layout() == at::kSparseCsr) {
    return at::_sparse_csr_tensor_unsafe(
        on_card(tensor.crow_indices(), device), on_card(tensor.col_indices(), device),
        on_card(tensor.values(), device), tensor.sizes(),
        at::dtype(tensor.scalar_type()).layout(at::kSparseCsr).device(device));
  }
  auto options = at::dtype(tensor.scalar_type()).device(device);
  Tensor moved = at::empty_strided(tensor.sizes(), tensor.strides(), options);
  on_cpu(moved).copy_(tensor);
  return moved;
}

// ---------------------------------------------------------- copies and single numbers

Tensor copy_from(const Tensor& from, const Tensor& to, bool) {
  if (!is_ours(from)) count("from host");
  if (!is_ours(to)) {
    count("to host");
    count_wait("copy to the host");
  }
  if (is_ours(from) && is_ours(to)) count("calls");
  if (from.numel()) on_cpu(to).copy_(on_cpu(from).expand_as(to));
  return to;
}

Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, false);
}

at::Scalar item(const Tensor& tensor) {
  count_wait("item");
  return at::_local_scalar_dense(on_cpu(tensor));
}

// ------------------------------------------------------------------ all other operations

// These have a shape that depends on numbers, or report an error to the host.
const std::set<std::string> WAITING{
    "aten::_linalg_eigh", "aten::_linalg_svd",     "aten::_unique2",
    "aten::equal",        "aten::linalg_eig",      "aten::linalg_lstsq",
    "aten::masked_select", "aten::nonzero",        "aten::repeat_interleave",
    "aten::unique_consecutive", "aten::unique_dim"};
// These accept positions of the host, and copy them.
const std::set<std::string> INDEXING{
    "aten::_index_put_impl_", "aten::_unsafe_index", "aten::index", "aten::index_put_"};

// The arguments of one operation: those of the card are replaced by what the CPU sees,
// and afterwards results by what is on the card.
class Call {
 public:
  Call(const c10::OperatorHandle& operation, torch::jit::Stack* stack)
      : schema(operation.schema()), name(schema.operator_name().name), stack(stack) {
    first = stack->size() - schema.arguments().size();
  }

  void to_cpu() {
    for (size_t k = first; k < stack->size(); ++k) find_card((*stack)[k]);
    for (size_t k = first; k < stack->size(); ++k) check((*stack)[k], k - first);
    for (size_t k = first; k < stack->size(); ++k) replace((*stack)[k]);
    count("calls");
    count("call:" + name.substr(6));
    if (WAITING.count(name) || checks_errors()) count_wait(name.substr(6));
  }

  void to_card() {
    for (size_t k = first; k < stack->size(); ++k) {
      IValue& value = (*stack)[k];
      if (value.isTensor()) value = result(value.toTensor());
      if (value.isTensorList()) {
        c10::List<Tensor> moved;
        for (const Tensor& tensor : value.toTensorVector()) moved.push_back(result(tensor));
        value = moved;
      }
    }
    for (auto& [seen, ours] : aliases) keep_changes(seen, ours);
  }

 private:
  const c10::FunctionSchema& schema;
  std::string name;
  torch::jit::Stack* stack;
  size_t first;
  std::optional<Device> device;
  std::vector<std::pair<Tensor, Tensor>> aliases;  // as the CPU sees it, on the card

  static std::vector<Tensor> tensors_in(const IValue& value) {
    if (value.isTensor()) return {value.toTensor()};
    if (value.isTensorList()) return value.toTensorVector();
    std::vector<Tensor> found;
    if (value.isOptionalTensorList())
      for (std::optional<Tensor> each : value.toOptionalTensorList())
        if (each) found.push_back(*each);
    return found;
  }

  void find_card(const IValue& value) {
    if (value.isDevice() && value.toDevice().type() == OURS)
      device = card(value.toDevice().index());
    for (const Tensor& tensor : tensors_in(value))
      if (!device && tensor.defined() && is_ours(tensor)) device = tensor.device();
  }

  void check(const IValue& value, size_t argument) {
    if (!device) return;
    if (value.isGenerator())
      TORCH_CHECK(
          value.toGenerator().device().type() == OURS, "Expected a '", *device,
          "' device type for generator but found '", value.toGenerator().device(), "'");
    bool position = argument == 1 && INDEXING.count(name);
    for (const Tensor& tensor : tensors_in(value)) {
      if (!tensor.defined()) continue;
      if (position && (tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte))
        count_wait("index with a mask");
      if (tensor.device() == *device || (tensor.device().is_cpu() && tensor.dim() == 0))
        continue;
      TORCH_CHECK(
          position && tensor.device().is_cpu(),
          "Expected all tensors to be on the same device, but found at least two devices, ",
          *device, " and ", tensor.device(), "! (argument ", argument, " of ", name, ")");
      count("from host");
    }
  }

  bool checks_errors() const {  // as torch.linalg.inv_ex does if it is asked to
    for (size_t k = 0; k < schema.arguments().size(); ++k)
      if (schema.arguments()[k].name() == "check_errors" && (*stack)[first + k].toBool())
        return true;
    return false;
  }

  Tensor seen(const Tensor& tensor) {
    if (!tensor.defined() || !is_ours(tensor)) return tensor;
    for (auto& [before, ours] : aliases)
      if (ours.is_same(tensor)) return before;
    aliases.emplace_back(on_cpu(tensor), tensor);
    return aliases.back().first;
  }

  void replace(IValue& value) {
    if (value.isTensor()) {
      value = seen(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<Tensor> list;
      for (const Tensor& tensor : value.toTensorVector()) list.push_back(seen(tensor));
      value = list;
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<Tensor>> list;
      for (std::optional<Tensor> each : value.toOptionalTensorList())
        list.push_back(each ? std::make_optional(seen(*each)) : std::nullopt);
      value = list;
    } else if (value.isDevice() && value.toDevice().type() == OURS) {
      value = Device(at::kCPU);
    }
  }

  Tensor result(const Tensor& tensor) {
    if (tensor.defined() && tensor.scalar_type() == at::kDouble && tensor.dim() > 1)
      count("double");
    for (auto& [seen, ours] : aliases)
      if (seen.is_same(tensor)) return ours;
    return device ? on_card(tensor, *device) : tensor;
  }

  // The CPU wrote into shared memory, unless it gave the tensor another size.
  static void keep_changes(const Tensor& seen, const Tensor& ours) {
    if (ours.layout() == at::kSparseCsr) {
      Tensor values = at::sparse_csr::get_sparse_csr_impl(ours)->values();
      if (seen.values().data_ptr() != values.data_ptr()) on_cpu(values).copy_(seen.values());
    } else if (seen.sizes() != ours.sizes() || seen.data_ptr() != ours.data_ptr()) {
      ours.resize_(seen.sizes());
      on_cpu(ours).copy_(seen);
    }
  }
};

void on_the_cpu(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  at::AutoDispatchBelowAutograd below;
  Call call(operation, stack);
  call.to_cpu();
  operation.callBoxed(stack);
  call.to_card();
}

// PyTorch asks a foreign device for convolutions by names of their own.
Tensor convolution(
    const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
    c10::IntArrayRef stride, c10::IntArrayRef padding, c10::IntArrayRef dilation,
    bool transposed, c10::IntArrayRef output_padding, int64_t groups) {
  count("calls");
  std::optional<Tensor> added = bias ? std::make_optional(on_cpu(*bias)) : std::nullopt;
  return on_card(
      at::convolution(
          on_cpu(input), on_cpu(weight), added, stride, padding, dilation, transposed,
          output_padding, groups),
      input.device());
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(
    const Tensor& grad, const Tensor& input, const Tensor& weight, c10::IntArrayRef stride,
    c10::IntArrayRef padding, c10::IntArrayRef dilation, bool transposed,
    c10::IntArrayRef output_padding, int64_t groups, std::array<bool, 3> wanted) {
  count("calls");
  int64_t channels = transposed ? weight.size(1) * groups : weight.size(0);
  auto [of_input, of_weight, of_bias] = at::convolution_backward(
      on_cpu(grad), on_cpu(input), on_cpu(weight), c10::IntArrayRef{channels}, stride,
      padding, dilation, transposed, output_padding, groups, wanted);
  Device device = input.device();
  return {on_card(of_input, device), on_card(of_weight, device), on_card(of_bias, device)};
}

// The parts of a sparse tensor, which are no operations.
at::SparseCsrTensorImpl* parts_of(const Tensor& tensor) {
  return at::sparse_csr::get_sparse_csr_impl(tensor);
}
Tensor values(const Tensor& tensor) { return parts_of(tensor)->values().alias(); }
Tensor starts(const Tensor& tensor) { return parts_of(tensor)->compressed_indices().alias(); }
Tensor columns(const Tensor& tensor) { return parts_of(tensor)->plain_indices().alias(); }
int64_t n_stored(const Tensor& tensor) { return parts_of(tensor)->nnz(); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("resize_", &resize);
  m.impl("as_strided", &as_strided);
  m.impl("view", &view);
  m.impl("_reshape_alias", &reshape_alias);
  m.impl("set_.source_Storage_storage_offset", &set_strided);
  m.impl("set_.source_Storage", &set_storage);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("_local_scalar_dense", &item);
  m.impl("convolution_overrideable", &convolution);
  m.impl("convolution_backward_overrideable", &convolution_backward);
}

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  m.impl("values", &values);
  m.impl("crow_indices", &starts);
  m.impl("col_indices", &columns);
  m.impl("_nnz", &n_stored);
  // PyTorch would give the result the layout of the first argument.
  m.impl("addmm", torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>());
  m.impl("mm", torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>());
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>());
}

TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>());
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  at::RegisterPrivateUse1HooksInterface(&hooks);
  m.def("counts", [] { return counts; });
  m.def("reset", [] { counts.clear(); });
  m.def("peak", [] { return peak.load(); });
  m.def("start_peak", [] { peak = in_use.load(); });
  m.def("in_use", [] { return in_use.load(); });
  m.def("limit", [](std::optional<size_t> bytes) {
    limit = bytes.value_or(std::numeric_limits<size_t>::max());
  });
  m.def("current", [] { return static_cast<int>(current); });
  m.def("set_current", [](int index) { Guard().setDevice(Device(OURS, index)); });
}
