"""The errors that a call can end in, each a usual Python class too."""


class CloverError(Exception):
    """Base of every error that clover-ops raises."""


class InvalidArgument(CloverError, ValueError):
    """The call is wrong whatever the backend; nothing has been written."""


class Unsupported(CloverError, NotImplementedError):
    """No provider on the tensors' device takes the call; the message names each with its reason."""


class MissingWorkspace(CloverError, ValueError):
    """The workspace is missing, too small or misaligned."""


class DriverError(CloverError, RuntimeError):
    """A device driver refused or failed."""


class CompileError(CloverError, RuntimeError):
    """A kernel could not be compiled or loaded."""


class AbiMismatch(CloverError, ImportError):
    """Libraries of different versions, or a native library that cannot be loaded."""


class InternalError(CloverError, RuntimeError):
    """A bug in clover-ops, or memory exhausted."""


# The kinds under which the native binding raises them.
KINDS = {
    "CloverInvalidArgument": InvalidArgument,
    "CloverUnsupported": Unsupported,
    "CloverMissingWorkspace": MissingWorkspace,
    "CloverDriverError": DriverError,
    "CloverCompileError": CompileError,
    "CloverAbiMismatch": AbiMismatch,
    "CloverInternalError": InternalError,
}
