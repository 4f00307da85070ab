def write(results):
    pass
