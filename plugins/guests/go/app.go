//go:build wasip1

package main

// Between Pintle and the logic: what the host calls. Nothing here needs to change.

import (
	"encoding/json"
	"errors"
	"fmt"
	"unsafe"
)

//go:wasmexport pintle:plugin/plugin-info@0.1.0#describe
func describe() unsafe.Pointer {
	result := newResult(8, 0)
	result.putString(0, manifest)
	return result.pointer()
}

//go:wasmexport pintle:plugin/plugin-info@0.1.0#validate-config
func validateConfig(config, configLen, args, argsLen uint32) unsafe.Pointer {
	text := take(config, configLen)
	release()
	var failure *guestFailure
	guard(&failure, func() error {
		var config Config
		if err := json.Unmarshal([]byte(text), &config); err != nil {
			return Failure{Message: "spec.config is not as expected: " + err.Error()}
		}
		return config.Validate()
	})
	result := newResult(4+sizeOfFailure, 0)
	if failure != nil {
		result.putByte(0, 1)
		result.putFailure(4, failure)
	}
	return result.pointer()
}

//go:wasmexport pintle:plugin/readiness@0.1.0#check
func check(given uint32) unsafe.Pointer {
	// A record of the context, then the target: more than fits into arguments, so the host has put it down.
	namespace, args := takeAt(given+4+8), takeAt(given+56)
	release()
	var failure *guestFailure
	var blocker *Blocker
	var other Object
	guard(&failure, func() error {
		var parsed Args
		var config Config
		if err := errors.Join(json.Unmarshal([]byte(args), &parsed), json.Unmarshal([]byte(inputsConfig()), &config)); err != nil {
			return Failure{Message: "arguments or config are not as expected: " + err.Error()}
		}
		other = parsed.Other(namespace)
		waiting, met, err := Check(parsed, config, other, kubeGet)
		if err == nil && waiting == nil {
			emit(levelDebug, met, [2]string{"name", other.Name})
		}
		blocker = waiting
		return err
	})
	result := newResult(8+sizeOfAnswer, 0)
	switch {
	case failure != nil:
		result.putByte(0, 1)
		result.putFailure(8, failure)
	case blocker != nil:
		result.putByte(8, 1)
		result.putPending(16, other, blocker)
	}
	return result.pointer()
}

// guard runs what may fail or panic. What nobody expected becomes a log line and a failure; else the host
// would see a trap without a word.
func guard(failure **guestFailure, run func() error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			*failure = unexpected(fmt.Sprint("panic: ", panicked))
		}
	}()
	err := run()
	var expected Failure
	switch {
	case err == nil:
	case errors.As(err, &expected):
		*failure = &guestFailure{retry: retryWhenInputsChange, message: expected.Message}
		if expected.IsPassing {
			(*failure).retry = retryWithBackOff
		}
	default:
		*failure = unexpected(err.Error())
	}
}

func unexpected(message string) *guestFailure {
	emit(levelError, message)
	return &guestFailure{retry: retryWithBackOff, message: message}
}
