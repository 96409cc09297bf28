//go:build wasip1

package main

// How values of the interfaces lie in memory (the canonical ABI of the component model). There is no generator for
// the standard Go toolchain whose modules can be had everywhere, so the few types that this plugin needs are laid
// out by hand. Offsets are in bytes.

import (
	"encoding/binary"
	"strconv"
	"unsafe"
)

const (
	levelDebug, levelError                    = 1, 4
	retryWhenInputsChange, retryWithBackOff   = 0, 1
	sizeOfObjectRef, sizeOfBlocker            = 36, 68
	sizeOfReport, sizeOfFailure, sizeOfAnswer = 60, 80, 112
)

type guestFailure struct {
	retry   byte
	message string
}

// What the host hands over goes here. It must not come from Go's own heap: a collection that begins while the host
// writes arguments would leave the instance, which is forbidden then.
var (
	arena    [16 << 20]byte
	top      uint32
	reserved uint32
)

// What was taken while the runtime started stays taken.
func init() { reserved = top }

//go:wasmexport cabi_realloc
func cabiRealloc(_, _, align, size uint32) uint32 {
	base := uint32(uintptr(unsafe.Pointer(&arena[0])))
	at := (base + top + align - 1) &^ (align - 1)
	if at+size > base+uint32(len(arena)) {
		panic("what the host hands over is larger than 16 MiB")
	}
	top = at + size - base
	return at
}

// release gives back what the host handed over; it was copied.
func release() { top = reserved }

func take(pointer, length uint32) string {
	return string(unsafe.Slice((*byte)(unsafe.Pointer(uintptr(pointer))), length))
}

func word(at uint32) uint32 { return *(*uint32)(unsafe.Pointer(uintptr(at))) }

func takeAt(at uint32) string { return take(word(at), word(at+4)) }

// A result in memory, with all that it points to, until the host has read it.
type result struct {
	words []uint64
	bytes []byte
}

var kept []*result

//go:wasmexport cabi_post_pintle:plugin/plugin-info@0.1.0#describe
func postDescribe(unsafe.Pointer) { kept = nil }

//go:wasmexport cabi_post_pintle:plugin/plugin-info@0.1.0#validate-config
func postValidateConfig(unsafe.Pointer) { kept = nil }

//go:wasmexport cabi_post_pintle:plugin/readiness@0.1.0#check
func postCheck(unsafe.Pointer) { kept = nil }

// newResult makes room that is aligned for every type; first is the case of an outermost variant.
func newResult(size int, first byte) *result {
	words := make([]uint64, (size+7)/8+1)
	made := &result{words: words, bytes: unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)}
	made.bytes[0] = first
	kept = append(kept, made)
	return made
}

func (r *result) pointer() unsafe.Pointer { return unsafe.Pointer(&r.words[0]) }

func (r *result) address() uint32 { return uint32(uintptr(r.pointer())) }

func (r *result) putByte(at int, value byte) { r.bytes[at] = value }

func (r *result) putWord(at int, value uint32) { binary.LittleEndian.PutUint32(r.bytes[at:], value) }

func (r *result) putString(at int, text string) {
	held := newResult(len(text), 0)
	copy(held.bytes, text)
	r.putWord(at, held.address())
	r.putWord(at+4, uint32(len(text)))
}

func (r *result) putObject(at int, object Object) {
	r.putString(at, object.APIVersion)
	r.putString(at+8, object.Kind)
	if object.Namespace != "" {
		r.putByte(at+16, 1)
		r.putString(at+20, object.Namespace)
	}
	r.putString(at+28, object.Name)
}

// putPending lays down `pending` with one blocker; the rest of it, and of a report, is empty when it is zero.
func (r *result) putPending(at int, about Object, blocker *Blocker) {
	list := newResult(sizeOfBlocker, 1)
	list.putObject(4, about)
	list.putString(52, blocker.Reason)
	list.putString(60, blocker.Message)
	r.putWord(at, list.address())
	r.putWord(at+4, 1)
}

func (r *result) putFailure(at int, failure *guestFailure) {
	r.putByte(at, failure.retry)
	r.putString(at+4, failure.message)
}

//go:wasmimport pintle:plugin/inputs@0.1.0 config
func importConfig(result unsafe.Pointer)

//go:wasmimport pintle:plugin/log@0.1.0 emit
func importEmit(level, message, messageLen uint32, fields unsafe.Pointer, fieldsLen uint32)

//go:wasmimport pintle:plugin/kube-read@0.1.0 get
func importGet(apiVersion, apiVersionLen, kind, kindLen, hasNamespace, namespace, namespaceLen, name, nameLen uint32,
	fields unsafe.Pointer, fieldsLen uint32, result unsafe.Pointer)

func inputsConfig() string {
	answer := newResult(8, 0)
	importConfig(answer.pointer())
	defer release()
	return takeAt(answer.address())
}

func emit(level uint32, message string, fields ...[2]string) {
	given := newResult(8+16*len(fields), 0)
	given.putString(0, message)
	for index, field := range fields {
		given.putString(8+16*index, field[0])
		given.putString(16+16*index, field[1])
	}
	address := given.address()
	importEmit(level, word(address), word(address+4), unsafe.Pointer(&given.bytes[8]), uint32(len(fields)))
}

// kubeGet reads the fields of an object.
func kubeGet(object Object, fields []string) (string, error) {
	given := newResult(sizeOfObjectRef+8*len(fields), 0)
	given.putObject(0, object)
	for index, field := range fields {
		given.putString(sizeOfObjectRef+8*index, field)
	}
	at, answer := given.address(), newResult(24, 0)
	importGet(word(at), word(at+4), word(at+8), word(at+12), uint32(given.bytes[16]), word(at+20), word(at+24),
		word(at+28), word(at+32), unsafe.Pointer(&given.bytes[sizeOfObjectRef]), uint32(len(fields)), answer.pointer())
	defer release()
	if answer.bytes[0] == 0 {
		return takeAt(answer.address() + 8), nil
	}
	switch answer.bytes[8] {
	case 1:
		return "", ErrNotFound
	case 2:
		return "", ErrKindUnknown
	case 3:
		size := binary.LittleEndian.Uint64(answer.bytes[16:])
		return "", Failure{Message: "it is too large, " + strconv.FormatUint(size, 10) + " bytes"}
	case 4:
		return "", Failure{Message: takeAt(answer.address() + 16), IsPassing: true}
	default:
		return "", Failure{Message: takeAt(answer.address() + 16)}
	}
}
