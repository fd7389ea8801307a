package config

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// minSecret is the least number of bytes of a secret outside dev.
const minSecret = 16

// weak says what is wrong with one secret text, "" when nothing is.
func weak(s string, c *Config) string {
	switch {
	case c.Mode != ModeDev && published(s):
		return "not the published secret of `make dev`, which only mode dev accepts"
	case len(s) < minSecret:
		return fmt.Sprintf("at least %d bytes long", minSecret)
	case strings.TrimSpace(s) != s:
		return "without blanks at its ends"
	}
	return ""
}

func secret() rule {
	return rule{right: "at least 16 bytes", check: func(v any, c *Config) string { return weak(v.(string), c) }}
}

// items is the rule of a list of secrets: not empty, each item right, none
// twice. check answers what item must be, and a text that must be unique.
func items(right string, check func(item string, c *Config) (complaint, unique string)) rule {
	return rule{right: right, check: func(v any, c *Config) string {
		list := v.([]string)
		if len(list) == 0 {
			return right
		}
		seen := make(map[string]bool, len(list))
		for i, item := range list {
			complaint, unique := check(item, c)
			if complaint == "" && seen[unique] {
				complaint = "different from the items before it"
			}
			if complaint != "" {
				return fmt.Sprintf("%s; item %d must be %s", right, i+1, complaint)
			}
			seen[unique] = true
		}
		return ""
	}}
}

func linkKeys() rule {
	return items("one or more id:secret, the ids 0 to 255 and each once, the secrets of at least 16 bytes", func(item string, c *Config) (string, string) {
		id, secret, ok := strings.Cut(item, ":")
		n, err := strconv.ParseUint(id, 10, 8)
		if !ok || err != nil {
			return "a number of 0 to 255, a colon and a secret", ""
		}
		if w := weak(secret, c); w != "" {
			return "a secret " + w, ""
		}
		return "", strconv.FormatUint(n, 10)
	})
}

var callerPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

func apiKeys() rule {
	return items("one or more caller:secret, each secret once and of at least 16 bytes", func(item string, c *Config) (string, string) {
		caller, secret, ok := strings.Cut(item, ":")
		if !ok || !callerPattern.MatchString(caller) {
			return "the caller's name (letters, digits, _ . -), a colon and a secret", ""
		}
		if c.Mode == ModeDev && secret != "" {
			return "", secret
		}
		if w := weak(secret, c); w != "" {
			return "a secret " + w, ""
		}
		return "", secret
	})
}

// payloadKeyBytes is the length of a key that encrypts payloads.
const payloadKeyBytes = 32

var payloadKeyID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// PayloadKey takes an item of secrets.payload_keys apart.
func PayloadKey(item string) (id string, key []byte, ok bool) {
	id, text, ok := strings.Cut(item, ":")
	key, err := base64.StdEncoding.Strict().DecodeString(text)
	return id, key, ok && err == nil
}

func payloadKeys() rule {
	list := items("id:key, the ids of letters, digits, _ and - and each once, the keys the base64 of 32 bytes (openssl rand -base64 32); or unset", func(item string, c *Config) (string, string) {
		id, key, ok := PayloadKey(item)
		switch {
		case !payloadKeyID.MatchString(id):
			return "an id (1 to 32 letters, digits, _ or -), a colon and a key", ""
		case !ok:
			return "a key in base64 behind its id and a colon", ""
		case len(key) != payloadKeyBytes:
			return fmt.Sprintf("the base64 of %d bytes behind its id, not of %d", payloadKeyBytes, len(key)), ""
		case c.Mode != ModeDev && published(item):
			return "a key " + weak(item, c), ""
		}
		return "", id
	})
	return optional(list)
}

// optional is the rule of a list that may be empty.
func optional(list rule) rule {
	return rule{right: list.right, check: func(v any, c *Config) string {
		if len(v.([]string)) == 0 {
			return ""
		}
		return list.check(v, c)
	}}
}

func webhookSecrets() rule {
	return items("one or more whsec_ with the base64 of at least 16 bytes", webhookSecret)
}

func webhookSecret(item string, c *Config) (complaint, unique string) {
	key, ok := webhookKey(item)
	switch {
	case !ok:
		return "whsec_ and base64", ""
	case c.Mode != ModeDev && published(item):
		return weak(item, c), ""
	case len(key) < minSecret:
		return fmt.Sprintf("the base64 of at least %d bytes", minSecret), ""
	}
	return "", string(key)
}
