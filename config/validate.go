package config

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Problem is one thing that is wrong with the configuration.
type Problem struct {
	Key    string // or the name of a variable, or a file
	Value  string // masked when it is a secret, "" when there is none to show
	Source string // where the value came from
	Right  string // what is wrong or what would be right
}

func (p Problem) String() string {
	s := p.Key
	if p.Value != "" {
		s += " = " + p.Value
	}
	if p.Source != "" {
		s += " (" + p.Source + ")"
	}
	return s + ": " + p.Right
}

// Error lists everything that is wrong with a configuration, one line each.
type Error struct{ Problems []Problem }

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("the configuration is not right:")
	for _, p := range e.Problems {
		b.WriteString("\n  " + p.String())
	}
	if e.bare() {
		b.WriteString("\n\nNothing is set yet. A key such as shop.name is set by HOLDFAST_SHOP_NAME, in a file (--config) or by\n" +
			"--set. \"holdfast init\" prints settings with fresh secrets; HOLDFAST_MODE=dev has secrets to try it with.")
	}
	return b.String()
}

// bare says whether nobody has set anything that is asked for: somebody's first try.
func (e *Error) bare() bool {
	return len(e.Problems) > 3 && !slices.ContainsFunc(e.Problems, func(p Problem) bool { return p.Source != fromDefault })
}

// Validate checks every key and answers an *Error with all problems, or nil.
// Load has called it.
func (c *Config) Validate() error {
	if list := c.check(nil); len(list) > 0 {
		return &Error{Problems: list}
	}
	return nil
}

// check applies the rules to all keys but those in skip.
func (c *Config) check(skip map[string]bool) []Problem {
	var list []Problem
	for _, k := range keys {
		if skip[k.name] || k.rule.check == nil {
			continue
		}
		v := c.field(k.name).Interface()
		if right := k.rule.check(v, c); right != "" {
			list = append(list, Problem{Key: k.name, Value: k.show(v), Source: c.sources[k.name], Right: "must be " + right})
		}
	}
	return list
}

// show writes a value for people, a secret masked.
func (k key) show(v any) string {
	switch v := v.(type) {
	case string:
		switch {
		case !k.secret:
			return quoteIfUnclear(v)
		case v == "":
			return "(empty)"
		}
	case []string:
		switch {
		case !k.secret:
			return quoteIfUnclear(strings.Join(v, ","))
		case len(v) == 0:
			return "(empty)"
		}
		return fmt.Sprintf("(secret, items: %d)", len(v))
	case time.Duration:
		return formatDuration(v)
	}
	if k.secret {
		return "(secret)"
	}
	return fmt.Sprint(v)
}

// quoteIfUnclear quotes a text whose ends or characters one could not see.
func quoteIfUnclear(s string) string {
	if q := strconv.Quote(s); s == "" || q != `"`+s+`"` || strings.TrimSpace(s) != s {
		return q
	}
	return s
}

// Setting is one key with its value, masked when it is a secret, and where the
// value came from: a default, "file" with its path, a variable's name, "--set".
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source,omitempty"`
}

// Masked lists the effective configuration without its secrets.
func (c Config) Masked() []Setting {
	list := make([]Setting, len(keys))
	for i, k := range keys {
		list[i] = Setting{Key: k.name, Value: k.show(c.field(k.name).Interface()), Source: c.sources[k.name]}
	}
	return list
}

// LogValue logs what differs from the defaults, without the secrets.
func (c Config) LogValue() slog.Value {
	var attrs []slog.Attr
	for _, s := range c.Masked() {
		if s.Source != fromDefault {
			attrs = append(attrs, slog.String(s.Key, s.Value))
		}
	}
	return slog.GroupValue(attrs...)
}

// String is the text of LogValue, so that a careless print shows no secret.
func (c Config) String() string { return c.LogValue().String() }

// String keeps the secrets out of a careless print.
func (Secrets) String() string { return "(secret)" }

// LogValue keeps the secrets out of a careless log line.
func (s Secrets) LogValue() slog.Value { return slog.StringValue(s.String()) }
