package starter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	maxBody  = 64 << 10
	maxDepth = 16 // no body of ours nests deeper than three
)

// readBody reads at most maxBody bytes.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return readBodyOf(w, r, maxBody)
}

// readBodyOf reads at most so many bytes.
func readBodyOf(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, problem(bodyTooLarge, "a body may have at most %d bytes", most)
	case err != nil:
		return nil, problem(malformedBody, "the body ended before it was complete")
	}
	return raw, nil
}

// isMedia says whether the request's body is of the media type want.
func isMedia(r *http.Request, want string) bool {
	got, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && got == want
}

// readObject reads a JSON object. An empty body counts as {} when optional.
func readObject(w http.ResponseWriter, r *http.Request, optional bool) (*fields, error) {
	raw, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	if optional && len(bytes.TrimSpace(raw)) == 0 {
		return newFields(map[string]any{}), nil
	}
	if err := isJSON(r); err != nil {
		return nil, err
	}
	return parseObject(raw)
}

// isJSON refuses a body that does not say that it is JSON, as it is.
func isJSON(r *http.Request) error {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return problem(unsupportedMediaType, "the body must be sent as it is, without Content-Encoding %.80q", coding)
	}
	if !isMedia(r, "application/json") {
		return problem(unsupportedMediaType, "Content-Type must be application/json, not %.80q", r.Header.Get("Content-Type"))
	}
	return nil
}

func parseObject(raw []byte) (*fields, error) {
	switch {
	case !utf8.Valid(raw):
		return nil, problem(malformedBody, "the body is not UTF-8")
	case bytes.HasPrefix(raw, []byte("\ufeff")):
		return nil, problem(malformedBody, "the body begins with a byte order mark; leave it out")
	case halfCharacter(raw):
		return nil, problem(malformedBody, "an escape is one half of a surrogate pair, and no character")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // a number must be seen as it was written
	v, err := readValue(dec, 0)
	if err == nil {
		if _, end := dec.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("something follows the JSON value")
		}
	}
	if err != nil {
		return nil, problem(malformedBody, "%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, invalid(FieldError{Pointer: "", Detail: "must be a JSON object"})
	}
	return newFields(object), nil
}

// halfCharacter finds an escape of one half of a surrogate pair. A decoder puts the
// same character in the place of each, so that two references would be one.
func halfCharacter(raw []byte) bool {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 || i+1 >= len(raw) {
			return false
		}
		if raw = raw[i:]; raw[1] != 'u' {
			raw = raw[2:]
			continue
		}
		first, second := escaped(raw), rune(0)
		if raw = raw[2:]; utf16.IsSurrogate(first) {
			if len(raw) >= 10 && raw[4] == '\\' && raw[5] == 'u' {
				second = escaped(raw[4:])
			}
			if utf16.DecodeRune(first, second) == unicode.ReplacementChar {
				return true
			}
			raw = raw[10:]
		}
	}
}

// escaped is the number of an escape such as \ud83d, 0 for none.
func escaped(raw []byte) rune {
	if len(raw) < 6 {
		return 0
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

// readValue reads one value. It is stricter than json.Unmarshal in one thing: a
// member that stands twice is an error, because two readers could disagree on
// which one counts.
func readValue(dec *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	tok, err := dec.Token()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected end of JSON input")
	}
	if err != nil {
		return nil, err
	}
	switch tok {
	case json.Delim('{'):
		object := map[string]any{}
		for dec.More() {
			name, err := dec.Token()
			if err != nil {
				return nil, err
			}
			key := name.(string) // the decoder accepts nothing else here
			if _, twice := object[key]; twice {
				return nil, fmt.Errorf("member %.80q stands twice", key)
			}
			if object[key], err = readValue(dec, depth+1); err != nil {
				return nil, err
			}
		}
		return object, closing(dec)
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			v, err := readValue(dec, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, closing(dec)
	}
	return tok, nil
}

func closing(dec *json.Decoder) error {
	_, err := dec.Token()
	if errors.Is(err, io.EOF) {
		return errors.New("unexpected end of JSON input")
	}
	return err
}

func invalid(errs ...FieldError) *Problem {
	p := problem(validationFailed, "%d member(s) of the body are not valid; see errors", len(errs))
	if len(errs) == 1 {
		at := errs[0].Pointer
		if at == "" {
			at = "the body"
		}
		p.Detail = at + " " + errs[0].Detail
	}
	p.Errors = errs
	return p
}
