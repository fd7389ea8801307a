package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/viper"
)

// Variables with our prefix that are no keys: the configuration file, the
// operator commands' access to a door, and the tests' switches.
var otherVariables = []string{
	"HOLDFAST_CONFIG", "HOLDFAST_URL", "HOLDFAST_OPS_URL", "HOLDFAST_KEY", "HOLDFAST_WEBHOOK_SECRET",
	"HOLDFAST_LONG", "HOLDFAST_BIN",
}

// Sources of a value, beside the name of a variable or "file" with its path.
const (
	fromDefault = "default"
	fromDev     = "default of mode dev"
	fromFlag    = "--set"
)

// Load reads the configuration: defaults, then the file at path (YAML, TOML or
// JSON by its ending; "" means the one that HOLDFAST_CONFIG names, if any),
// then HOLDFAST_* variables, then overrides, each "key=value". The error is an
// *Error that lists everything that is wrong.
//
// A value that is there but empty is empty, not the default: that is right for
// an optional text or list, and a problem for a number, a duration and a secret.
func Load(path string, overrides []string) (*Config, error) {
	if path == "" {
		path = os.Getenv("HOLDFAST_CONFIG")
	}
	l := loader{v: viper.New(), path: path, flags: map[string]bool{}, bad: map[string]bool{}}
	l.defaults()
	l.environment()
	l.file()
	l.overrides(overrides)
	cfg := l.decode()
	l.emptySecrets(cfg)
	l.problems = append(l.problems, cfg.check(l.bad)...)
	if len(l.problems) > 0 {
		return nil, &Error{Problems: l.problems}
	}
	if cfg.Gate.ReopenWait == 0 {
		cfg.Gate.ReopenWait = cfg.Gate.Lease + 10*time.Second
	}
	return cfg, nil
}

type loader struct {
	v        *viper.Viper
	path     string
	flags    map[string]bool // keys given by an override
	bad      map[string]bool // keys whose value could not even be read
	problems []Problem
}

func (l *loader) defaults() {
	for _, k := range keys {
		l.v.SetDefault(k.name, k.def)
	}
}

func (l *loader) environment() {
	l.v.SetEnvPrefix(envPrefix)
	l.v.SetEnvKeyReplacer(strings.NewReplacer(".", "_"))
	l.v.AllowEmptyEnv(true)
	l.v.AutomaticEnv()
	names := slices.Clone(otherVariables)
	for _, k := range keys {
		names = append(names, EnvName(k.name))
	}
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, envPrefix+"_") && !slices.Contains(names, name) {
			l.problems = append(l.problems, Problem{Key: name, Source: "environment", Right: "no such variable" + didYouMean(name, names)})
		}
	}
}

func (l *loader) file() {
	if l.path == "" {
		return
	}
	fail := func(right string) {
		l.problems = append(l.problems, Problem{Key: l.path, Source: "file", Right: right})
	}
	switch filepath.Ext(l.path) {
	case ".yaml", ".yml", ".toml", ".json":
	default:
		fail("must end in .yaml, .yml, .toml or .json")
		return
	}
	l.v.SetConfigFile(l.path)
	if err := l.v.ReadInConfig(); err != nil {
		fail("cannot be read: " + err.Error())
		return
	}
	for _, name := range l.v.AllKeys() {
		if _, ok := known[name]; !ok {
			l.unknown(name, "file "+l.path)
		}
	}
}

func (l *loader) unknown(name, source string) {
	var names, section []string
	for _, k := range keys {
		if strings.HasPrefix(name, k.name+".") {
			return // a section in place of a value: decode refuses the key itself
		}
		names = append(names, k.name)
		if strings.HasPrefix(k.name, name+".") {
			section = append(section, k.name)
			l.bad[k.name] = true
		}
	}
	right := "no such key" + didYouMean(name, names)
	if len(section) > 0 {
		right = "must be a section with " + strings.Join(section, ", ")
	}
	l.problems = append(l.problems, Problem{Key: name, Source: source, Right: right})
}

func (l *loader) overrides(list []string) {
	for _, item := range list {
		name, value, ok := strings.Cut(item, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		switch _, isKey := known[name]; {
		case !ok:
			l.problems = append(l.problems, Problem{Key: name, Source: fromFlag, Right: "must be key=value"})
		case !isKey:
			l.unknown(name, fromFlag)
		default:
			l.v.Set(name, value)
			l.flags[name] = true
		}
	}
}

// decode makes the struct; what cannot be decoded becomes a problem by its key.
func (l *loader) decode() *Config {
	cfg := &Config{sources: map[string]string{}}
	dev := map[string]any{}
	if l.v.GetString("mode") == ModeDev {
		dev = devDefaults()
	}
	for name, def := range dev {
		l.v.SetDefault(name, def)
	}
	for _, k := range keys {
		cfg.sources[k.name] = l.source(k.name, dev)
	}
	err := l.v.UnmarshalExact(cfg, viper.DecodeHook(convert))
	for _, e := range fieldErrors(err) {
		name, _, _ := strings.Cut(e.Name(), "[")
		if k, ok := known[name]; ok {
			l.bad[name] = true
			l.problems = append(l.problems, Problem{
				Key: name, Value: k.show(l.v.Get(name)), Source: cfg.sources[name], Right: "must be " + e.Unwrap().Error(),
			})
		}
	}
	if err != nil && len(l.problems) == 0 { // never pass over an error that the loop above did not know
		l.problems = append(l.problems, Problem{Key: "configuration", Source: l.path, Right: err.Error()})
	}
	return cfg
}

func (l *loader) source(name string, dev map[string]any) string {
	_, inEnv := os.LookupEnv(EnvName(name))
	_, inDev := dev[name]
	switch {
	case l.flags[name]:
		return fromFlag
	case inEnv:
		return EnvName(name)
	case l.v.InConfig(name):
		return "file " + l.path
	case inDev:
		return fromDev
	}
	return fromDefault
}

// emptySecrets refuses every secret that somebody set to nothing, needed or
// not: that is how a failed injection of secrets looks.
func (l *loader) emptySecrets(cfg *Config) {
	for _, k := range keys {
		if k.secret && !l.bad[k.name] && cfg.field(k.name).Len() == 0 && cfg.sources[k.name] != fromDefault {
			l.bad[k.name] = true
			l.problems = append(l.problems, Problem{
				Key: k.name, Value: "(empty)", Source: cfg.sources[k.name], Right: "is set, but to nothing: give the secret or unset it",
			})
		}
	}
}

// fieldError is what mapstructure says of one field.
type fieldError interface {
	error
	Name() string
	Unwrap() error
}

func fieldErrors(err error) []fieldError {
	var list []fieldError
	switch e := err.(type) {
	case nil:
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			list = append(list, fieldErrors(one)...)
		}
	case fieldError:
		if inner := fieldErrors(e.Unwrap()); len(inner) > 0 {
			return inner
		}
		list = append(list, e)
	case interface{ Unwrap() error }:
		return fieldErrors(e.Unwrap())
	}
	return list
}

// didYouMean names the nearest of names when it is near enough for a slip.
func didYouMean(name string, names []string) string {
	best, least := "", 3+len(name)/10
	for _, n := range names {
		if d := distance(name, n); d < least {
			best, least = n, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// distance is the number of letters to add, drop or change between a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
