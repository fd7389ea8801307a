// Package codec encrypts what Holdfast tells Temporal. Whoever can read Temporal
// alone, its database, its backups or its UI, then sees ids, SKUs, states and
// times, but nobody's number or name and no reference of a payment.
package codec

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"
)

const (
	// Encoding is the metadata "encoding" of an encrypted payload. Its data is a
	// nonce of 12 bytes and the AES-256-GCM of the inner payload, metadata and
	// all, as protobuf.
	Encoding = "binary/holdfast-aes256gcm"
	// KeyName is the metadata that names the key.
	KeyName = "encryption-key"
	// KeyBytes is the length of a key.
	KeyBytes = 32
)

// Key is one key of a ring. ID is what an operator calls it.
type Key struct {
	ID     string
	Secret []byte // KeyBytes long
}

// Name is what payloads call the key: its id, a dot, and eight digits of its
// digest. So an id that was given other bytes is seen as another key, and not as
// payloads that somebody has altered.
func (k Key) Name() string {
	sum := sha256.Sum256(append([]byte("holdfast payload key\n"), k.Secret...))
	return k.ID + "." + hex.EncodeToString(sum[:4])
}

// Codec is a converter.PayloadCodec over a key ring. The first key encrypts,
// every key decrypts, and payloads that are not encrypted are read as they are:
// a person's CLI and a checkout of its own send plain JSON. A ring without keys
// leaves payloads plain, and still knows an encrypted one when it meets it.
type Codec struct {
	first string // name of the key that encrypts, "" for none
	keys  map[string]cipher.AEAD
	names []string
}

// New makes a codec of keys, the first of which encrypts.
func New(keys ...Key) (*Codec, error) {
	c := &Codec{keys: map[string]cipher.AEAD{}}
	for _, k := range keys {
		if k.ID == "" || len(k.Secret) != KeyBytes {
			return nil, fmt.Errorf("payload key %q has %d bytes, it needs an id and %d", k.ID, len(k.Secret), KeyBytes)
		}
		block, err := aes.NewCipher(k.Secret)
		if err != nil {
			return nil, err
		}
		seal, err := cipher.NewGCM(block)
		if err != nil {
			return nil, err
		}
		c.keys[k.Name()] = seal
		c.names = append(c.names, k.Name())
	}
	if len(c.names) > 0 {
		c.first = c.names[0]
	}
	return c, nil
}

// Encrypts says whether there is a key.
func (c *Codec) Encrypts() bool { return c.first != "" }

// DataConverter is the SDK's own with the codec around it.
func (c *Codec) DataConverter() converter.DataConverter {
	return converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), c)
}

// FailureConverter encrypts the message and the stack trace of every failure,
// when there is a key.
func (c *Codec) FailureConverter() converter.FailureConverter {
	return temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
		DataConverter: c.DataConverter(), EncodeCommonAttributes: c.Encrypts(),
	})
}

// Encode encrypts payloads, each with a fresh nonce.
func (c *Codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	if !c.Encrypts() {
		return payloads, nil
	}
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		sealed, err := c.seal(p)
		if err != nil {
			return nil, err
		}
		out[i] = sealed
	}
	return out, nil
}

func (c *Codec) seal(p *commonpb.Payload) (*commonpb.Payload, error) {
	plain, err := proto.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encrypt a payload: %w", err)
	}
	key := c.keys[c.first]
	nonce := make([]byte, key.NonceSize(), key.NonceSize()+len(plain)+key.Overhead())
	rand.Read(nonce) // never fails since Go 1.24
	return &commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(Encoding), KeyName: []byte(c.first)},
		Data:     key.Seal(nonce, nonce, plain, bound(c.first)),
	}, nil
}

// bound is what a ciphertext is tied to beside its key.
func bound(name string) []byte { return []byte(Encoding + "\n" + name) }

// Decode decrypts what is encrypted and leaves the rest. An *UnknownKeyError in
// a workflow task fails the task, which is then repeated until the key is
// listed; a payload that was altered is an ErrAltered.
func (c *Codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		plain, err := c.open(p)
		if err != nil {
			return nil, err
		}
		out[i] = plain
	}
	return out, nil
}

func (c *Codec) open(p *commonpb.Payload) (*commonpb.Payload, error) {
	if string(p.GetMetadata()[converter.MetadataEncoding]) != Encoding {
		return p, nil
	}
	name := string(p.GetMetadata()[KeyName])
	key, ok := c.keys[name]
	if !ok {
		return nil, converter.NewWorkflowTaskFailureError(&UnknownKeyError{Name: name, Listed: c.names})
	}
	if len(p.GetData()) < key.NonceSize() {
		return nil, fmt.Errorf("%w: %d bytes under key %s", ErrAltered, len(p.GetData()), name)
	}
	plain, err := key.Open(nil, p.GetData()[:key.NonceSize()], p.GetData()[key.NonceSize():], bound(name))
	if err != nil {
		return nil, fmt.Errorf("%w: it does not open with key %s", ErrAltered, name)
	}
	inner := &commonpb.Payload{}
	if err := proto.Unmarshal(plain, inner); err != nil {
		return nil, fmt.Errorf("%w: what key %s opens is no payload: %w", ErrAltered, name, err)
	}
	return inner, nil
}

// ErrAltered is a payload that names one of our keys and was not made by it.
var ErrAltered = errors.New("an encrypted payload is cut or altered")

// UnknownKeyError is a payload under a key that is not listed.
type UnknownKeyError struct {
	Name   string   // as in the payload
	Listed []string // names of the keys that are
}

func (e *UnknownKeyError) Error() string {
	listed := "none is listed"
	if len(e.Listed) > 0 {
		listed = "listed are " + strings.Join(e.Listed, ", ")
	}
	what := fmt.Sprintf("a payload is encrypted with key %q, which is not in secrets.payload_keys (%s): ", e.Name, listed)
	id, _, _ := strings.Cut(e.Name, ".")
	for _, name := range e.Listed {
		if has, _, _ := strings.Cut(name, "."); has == id {
			return what + fmt.Sprintf("the id %s is listed with other bytes; give new bytes a new id, and list the old ones again under %s", id, id)
		}
	}
	return what + fmt.Sprintf("list key %s behind the first, in every worker and door", id)
}
