// Package leak looks for values that must not be found: in bytes, in whole
// files, and in any protobuf message, field by field by reflection, so that what
// a new version of Temporal adds is looked at as well.
package leak

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Finder knows the values that it looks for, in every form in which they may
// stand in clear.
type Finder struct{ forms map[string][][]byte }

// New looks for values, by what they are called.
func New(values map[string]string) *Finder {
	f := &Finder{forms: map[string][][]byte{}}
	for name, v := range values {
		forms := [][]byte{[]byte(v), []byte(url.QueryEscape(v)), []byte(hex.EncodeToString([]byte(v)))}
		if quoted, err := json.Marshal(v); err == nil {
			forms = append(forms, quoted[1:len(quoted)-1])
		}
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for before := range 3 {
				forms = append(forms, inBase64(enc, v, before))
			}
		}
		f.forms[name] = forms
	}
	return f
}

// inBase64 is the part of a base64 text that only v decides, when before bytes
// modulo 3 stand before it.
func inBase64(enc *base64.Encoding, v string, before int) []byte {
	text := enc.EncodeToString(append(make([]byte, before), v...))
	first := (before*8 + 5) / 6
	last := (before + len(v)) * 8 / 6
	return []byte(text[first:last])
}

// In answers which values raw contains.
func (f *Finder) In(raw []byte) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(f.forms)) {
		if slices.ContainsFunc(f.forms[name], func(form []byte) bool { return bytes.Contains(raw, form) }) {
			found = append(found, name)
		}
	}
	return found
}

// Hit is one value found.
type Hit struct{ Where, What string }

func (h Hit) String() string { return h.What + " in " + h.Where }

// Message answers what is found in a message and all that is in it.
func (f *Finder) Message(where string, m proto.Message) []Hit {
	var hits []Hit
	walk(where, m.ProtoReflect(), func(where string, raw []byte) {
		for _, what := range f.In(raw) {
			hits = append(hits, Hit{where, what})
		}
	}, nil)
	return hits
}

// Payloads visits every payload in a message.
func Payloads(where string, m proto.Message, visit func(where string, p *commonpb.Payload)) {
	walk(where, m.ProtoReflect(), func(string, []byte) {}, visit)
}

func walk(where string, m protoreflect.Message, text func(string, []byte), payload func(string, *commonpb.Payload)) {
	if p, ok := m.Interface().(*commonpb.Payload); ok && payload != nil {
		payload(where, p)
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		at := where + "." + string(fd.Name())
		switch {
		case fd.IsMap():
			v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				text(at, []byte(k.String()))
				value(at+"["+k.String()+"]", fd.MapValue(), v, text, payload)
				return true
			})
		case fd.IsList():
			for i := range v.List().Len() {
				value(fmt.Sprintf("%s[%d]", at, i), fd, v.List().Get(i), text, payload)
			}
		default:
			value(at, fd, v, text, payload)
		}
		return true
	})
	if unknown := m.GetUnknown(); len(unknown) > 0 {
		text(where+".(unknown fields)", unknown)
	}
}

func value(where string, fd protoreflect.FieldDescriptor, v protoreflect.Value, text func(string, []byte), payload func(string, *commonpb.Payload)) {
	switch fd.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		walk(where, v.Message(), text, payload)
	case protoreflect.StringKind:
		text(where, []byte(v.String()))
	case protoreflect.BytesKind:
		text(where, v.Bytes())
	}
}

// Files answers what is found in the files below a folder, names and contents.
// A file that goes away meanwhile is none.
func (f *Finder) Files(dir string) ([]Hit, error) {
	var hits []Hit
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if os.IsNotExist(err) || err == nil && d.IsDir() {
			return nil
		}
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		for _, what := range f.In(append([]byte(path+"\n"), raw...)) {
			hits = append(hits, Hit{path, what})
		}
		return err
	})
	return hits, err
}
