"""Between Pintle and the logic: bindings in, plain values out. Nothing here needs to change."""

import json

import logic
from componentize_py_types import Err
from wit_world import exports
from wit_world.exports import readiness
from wit_world.imports import inputs, kube_read, log, types


class PluginInfo(exports.PluginInfo):
    def describe(self):
        return json.dumps(logic.MANIFEST)

    def validate_config(self, config, args):
        with Guard():
            logic.validate(json.loads(config))


class Readiness(exports.Readiness):
    def check(self, ctx, target):
        with Guard():
            args, config = json.loads(ctx.args), json.loads(inputs.config())
            other = logic.reference(args, ctx.release.namespace)
            try:
                log.emit(log.Level.DEBUG, logic.check(args, config, other, read), [("name", other["name"])])
                return readiness.Answer(types.Verdict_Ready(), report())
            except logic.Blocker as waiting:
                about = types.Blocker(bound(other), None, waiting.reason, waiting.message)
                pending = types.Pending([about], [], None, None)
                return readiness.Answer(types.Verdict_Pending(pending), report())


class Guard:
    """What is not caught would end the call without a word: here it becomes a log line and a failure."""

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is None or isinstance(error, Err):
            return False
        if isinstance(error, logic.Failure):
            retry = types.Retry.WITH_BACK_OFF if error.is_passing else types.Retry.WHEN_INPUTS_CHANGE
            raise Err(types.Failure(retry, error.message, [], report())) from None
        # The module traceback would look for source files, and there are none.
        while trace.tb_next:
            trace = trace.tb_next
        message = f"{kind.__name__}: {error} ({trace.tb_frame.f_code.co_name}, line {trace.tb_lineno})"
        log.emit(log.Level.ERROR, message, [])
        raise Err(types.Failure(types.Retry.WITH_BACK_OFF, message, [], report())) from None


def read(other, fields):
    try:
        return kube_read.get(bound(other), fields)
    except Err as refused:
        match refused.value:
            case types.ReadError_NotFound():
                raise logic.NotFound() from None
            case types.ReadError_KindUnknown():
                raise logic.KindUnknown() from None
            case types.ReadError_Denied(why):
                raise logic.Failure(why) from None
            case types.ReadError_TooLarge(size):
                raise logic.Failure(f"it is too large, {size} bytes") from None
            case types.ReadError_Unavailable(why):
                raise logic.Failure(why, is_passing=True) from None


def bound(other):
    return types.ObjectRef(other["apiVersion"], other["kind"], other["namespace"], other["name"])


def report():
    return types.Report([], [], [], None, None, None)
