package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// base is a right production configuration but for the key under test.
var base = map[string]string{
	"shop.name":         "Stoelen",
	"http.public_url":   "https://stoelen.example",
	"sms.provider":      "console",
	"payment.provider":  "none",
	"secrets.person":    "person-secret-of-the-test",
	"secrets.main":      "main-secret-of-the-test",
	"secrets.links":     "7:link-secret-of-the-test",
	"secrets.api_keys":  "shop:api-key-of-the-test",
	"secrets.inventory": "whsec_aW52ZW50b3J5LW9mLXRoZS10ZXN0",
}

// Two keys for payloads.
const (
	keyA = "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE="
	keyB = "YmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmI="
)

// environ sets the variables of base and more, by key, and takes away every
// other variable of ours.
func environ(t *testing.T, more map[string]string) {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "HOLDFAST_") {
			t.Setenv(name, value) // so that it comes back after the test
			require.NoError(t, os.Unsetenv(name))
		}
	}
	for _, values := range []map[string]string{base, more} {
		for name, value := range values {
			t.Setenv(EnvName(name), value)
		}
	}
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// problems are those of an error of Load, by key.
func problems(t *testing.T, err error) map[string]Problem {
	t.Helper()
	var wrong *Error
	require.ErrorAs(t, err, &wrong)
	byKey := map[string]Problem{}
	for _, p := range wrong.Problems {
		require.NotContains(t, byKey, p.Key, "two lines for one key")
		byKey[p.Key] = p
	}
	return byKey
}

// leaves walks the struct, not the table.
func leaves(typ reflect.Type, prefix string) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for i := range typ.NumField() {
		f := typ.Field(i)
		if !f.IsExported() {
			continue
		}
		name := prefix + f.Tag.Get("mapstructure")
		if f.Type.Kind() == reflect.Struct {
			for k, v := range leaves(f.Type, name+".") {
				all[k] = v
			}
			continue
		}
		all[name] = f.Type
	}
	return all
}

func TestEveryFieldIsAKeyWithADefaultOfItsType(t *testing.T) {
	fields := leaves(reflect.TypeFor[Config](), "")
	names := map[string]string{}
	for _, k := range keys {
		require.Contains(t, fields, k.name)
		require.Equal(t, fields[k.name], reflect.TypeOf(k.def), k.name)
		require.NotEmpty(t, k.doc, k.name)
		require.NotContains(t, names, EnvName(k.name), "two keys with one variable")
		names[EnvName(k.name)] = k.name
	}
	require.Len(t, keys, len(fields))
}

func TestDefaults(t *testing.T) {
	environ(t, nil)
	cfg, err := Load("", nil)
	require.NoError(t, err)
	require.Equal(t, ModeProduction, cfg.Mode)
	require.Equal(t, Hold{TTL: 10 * time.Minute, Extension: 5 * time.Minute, Grace: time.Minute, After: "checkout"}, cfg.Hold)
	require.Equal(t, Offer{Window: 15 * time.Minute, MaxAge: 48 * time.Hour}, cfg.Offer)
	require.Equal(t, 180*24*time.Hour, cfg.Waitlist.TTL)
	require.Equal(t, Gate{
		Lease: 10 * time.Second, ReopenWait: 20 * time.Second,
		RecordRetention: 30 * 24 * time.Hour, SaleRetention: 400 * 24 * time.Hour, AuditAge: 10 * time.Minute, Fence: "on",
	}, cfg.Gate)
	require.Equal(t, []string{"127.0.0.1:6379"}, cfg.Redis.Addrs)
	require.Equal(t, Temporal{UIOrigins: []string{}}, cfg.Temporal)
	require.Empty(t, cfg.Secrets.PayloadKeys)
	require.Equal(t, 10, cfg.HTTP.DrainSeconds)
	require.Equal(t, Join{MaxBacklog: 5000, Workers: 32, PerPhone: 20, PerAddress: 300}, cfg.Join)
	require.Equal(t, 1, cfg.Missed.Keep)
	require.Equal(t, Quiet{From: "00:00", To: "00:00", MaxWait: 12 * time.Hour}, cfg.Quiet)
	require.Equal(t, time.Minute, cfg.SMS.SentGrace)
	require.InDelta(t, 1, cfg.SMS.SegmentsPerSecond, 0)
}

// B120: no file, only the environment; every field of the struct.
func TestEveryKeyByEnvironmentAlone(t *testing.T) {
	set := map[string]string{
		"mode": "dev", "shop.name": "Another", "sms.provider": "console", "payment.provider": "none", "gate.fence": "off", "hold.after": "page",
		"http.public_addr": ":1", "http.api_addr": ":2", "http.ops_addr": ":3", "worker.ops_addr": ":4", "http.public_url": "http://shop.example",
		"redis.addrs": "10.0.0.1:1, 10.0.0.2:2", "redis.tls": "true", "tripwire.pause": "true", "redis.db": "0", "gate.reopen_wait": "77s",
		"temporal.address": "t.example:7233", "metrics.skus": "CHAIR, TEE", "sms.twilio.base_url": "http://127.0.0.1:9", "phone.default_region": "NL",
		"http.trusted_proxies": "10.0.0.7,192.0.2.0/24", "sms.allowed_regions": "US,CA",
		"shop.locale": "de-AT", "missed.keep": "3", "worker.deployment": "shop-eu", "worker.build_id": "v1.2+3", "sms.segments_per_second": "2.5", "secrets.links": "1:aaaaaaaaaaaaaaaa,2:bbbbbbbbbbbbbbbb",
		"quiet.from": "22:00", "quiet.to": "08:00", "quiet.zone": "Europe/London",
		"secrets.api_keys": "a:aaaaaaaaaaaaaaaa,b:bbbbbbbbbbbbbbbb", "secrets.inventory": "whsec_YWFhYWFhYWFhYWFhYWFhYQ==",
		"temporal.ui_origins": "http://a.example,https://b.example:8443", "secrets.payload_keys": "b:" + keyB + ",a:" + keyA,
		"payment.webhook.secrets": "whsec_a,whsec_b", "payment.stripe.webhook_secrets": "whsec_c,whsec_d", "payment.stripe.base_url": "http://127.0.0.1:8", "payment.stripe.unnamed": "ignore",
		"events.url": "http://127.0.0.1:7", "events.secrets": "whsec_ZXZlbnRzLW9mLXRoZS10ZXN0,whsec_b3RoZXItZXZlbnRzLW9mLXRoZS10ZXN0",
	}
	want := map[string]any{
		"http.trusted_proxies": []string{"10.0.0.7", "192.0.2.0/24"}, "sms.allowed_regions": []string{"US", "CA"},
		"redis.addrs": []string{"10.0.0.1:1", "10.0.0.2:2"}, "metrics.skus": []string{"CHAIR", "TEE"}, "redis.tls": true, "tripwire.pause": true, "redis.db": 0, "missed.keep": 3,
		"gate.reopen_wait": 77 * time.Second, "sms.segments_per_second": 2.5,
		"secrets.links":    []string{"1:aaaaaaaaaaaaaaaa", "2:bbbbbbbbbbbbbbbb"},
		"secrets.api_keys": []string{"a:aaaaaaaaaaaaaaaa", "b:bbbbbbbbbbbbbbbb"}, "secrets.inventory": []string{"whsec_YWFhYWFhYWFhYWFhYWFhYQ=="},
		"temporal.ui_origins": []string{"http://a.example", "https://b.example:8443"}, "secrets.payload_keys": []string{"b:" + keyB, "a:" + keyA},
		"payment.webhook.secrets": []string{"whsec_a", "whsec_b"}, "payment.stripe.webhook_secrets": []string{"whsec_c", "whsec_d"},
		"events.secrets": []string{"whsec_ZXZlbnRzLW9mLXRoZS10ZXN0", "whsec_b3RoZXItZXZlbnRzLW9mLXRoZS10ZXN0"},
	}
	for name, typ := range leaves(reflect.TypeFor[Config](), "") {
		def := known[name].def
		switch {
		case want[name] != nil:
		case set[name] != "":
			want[name] = set[name]
		case typ == reflect.TypeFor[time.Duration]():
			d := def.(time.Duration) + time.Second
			set[name], want[name] = d.String(), d
		case typ.Kind() == reflect.Int:
			set[name], want[name] = "23", 23
		default:
			require.Equal(t, reflect.String, typ.Kind(), "%s needs a value in this test", name)
			set[name], want[name] = "value of "+name, "value of "+name
		}
	}
	environ(t, set)
	cfg, err := Load("", nil)
	require.NoError(t, err)
	for name := range leaves(reflect.TypeFor[Config](), "") {
		require.Equal(t, want[name], cfg.field(name).Interface(), name)
		require.Equal(t, EnvName(name), cfg.sources[name])
	}

	// One that takes no other value than its default, seen by the refusal.
	environ(t, map[string]string{"redis.db": "-1"})
	_, err = Load("", nil)
	require.Equal(t, "HOLDFAST_REDIS_DB", problems(t, err)["redis.db"].Source)
}

// B121: what is set above wins, also where a section comes from the file.
func TestFileThenEnvironmentThenFlags(t *testing.T) {
	files := map[string]string{
		"c.yaml": "hold:\n  ttl: 1m\n  grace: 2m\n  extension: 3m\nredis:\n  addrs: [a:1, b:2]\nhttp:\n  drain_seconds: 3\n",
		"c.toml": "[hold]\nttl = \"1m\"\ngrace = \"2m\"\nextension = \"3m\"\n[redis]\naddrs = [\"a:1\", \"b:2\"]\n[http]\ndrain_seconds = 3\n",
		"c.json": `{"hold": {"ttl": "1m", "grace": "2m", "extension": "3m"}, "redis": {"addrs": ["a:1", "b:2"]}, "http": {"drain_seconds": 3}}`,
	}
	for name, text := range files {
		t.Run(name, func(t *testing.T) {
			path := write(t, name, text)
			// B121: the section comes from the file, parts of it from above.
			environ(t, map[string]string{"hold.ttl": "20s", "hold.grace": "30s"})
			cfg, err := Load(path, []string{"hold.grace=40s"})
			require.NoError(t, err)
			require.Equal(t, Hold{TTL: 20 * time.Second, Grace: 40 * time.Second, Extension: 3 * time.Minute, After: "checkout"}, cfg.Hold)
			require.Equal(t, []string{"a:1", "b:2"}, cfg.Redis.Addrs)
			require.Equal(t, 3, cfg.HTTP.DrainSeconds)
			require.Equal(t, "HOLDFAST_HOLD_TTL", cfg.sources["hold.ttl"])
			require.Equal(t, "--set", cfg.sources["hold.grace"])
			require.Equal(t, "file "+path, cfg.sources["hold.extension"])
			require.Equal(t, "default", cfg.sources["hold.after"])
		})
	}
}

func TestFileNamedByVariable(t *testing.T) {
	environ(t, nil)
	t.Setenv("HOLDFAST_CONFIG", write(t, "c.yaml", "hold: {ttl: 1m}"))
	cfg, err := Load("", nil)
	require.NoError(t, err)
	require.Equal(t, time.Minute, cfg.Hold.TTL)

	cfg, err = Load(write(t, "other.yaml", "hold: {ttl: 2m}"), nil)
	require.NoError(t, err)
	require.Equal(t, 2*time.Minute, cfg.Hold.TTL, "--config wins over HOLDFAST_CONFIG")
}

func TestNullInAFileIsUnset(t *testing.T) {
	environ(t, nil)
	cfg, err := Load(write(t, "c.yaml", "hold: {ttl: }\noffer: {}\ngate: {lease: null}\n"), nil)
	require.NoError(t, err)
	require.Equal(t, 10*time.Minute, cfg.Hold.TTL)
	require.Equal(t, 15*time.Minute, cfg.Offer.Window)
	require.Equal(t, 10*time.Second, cfg.Gate.Lease)
}

func TestUnreadableFiles(t *testing.T) {
	environ(t, nil)
	for name, path := range map[string]string{
		"missing":      filepath.Join(t.TempDir(), "none.yaml"),
		"broken":       write(t, "c.yaml", "hold: [\n"),
		"unknown kind": write(t, "c.ini", "hold=1"),
		"key twice":    write(t, "c.yaml", "hold: {ttl: 1m}\nhold: {ttl: 2m}\n"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(path, nil)
			require.Contains(t, problems(t, err), path)
		})
	}
}

func TestUnknownNames(t *testing.T) {
	environ(t, nil)
	t.Setenv("HOLDFAST_HOLD_TTLS", "1m")
	t.Setenv("HOLDFAST_COLOUR", "red")
	path := write(t, "c.yaml", "hold: {tll: 1m}\ncolour: red\ngate: 5\nredis: {addrs: {a: 1}}\n")
	_, err := Load(path, []string{"offer.windo=1m", "novalue", "sms=twilio"})
	wrong := problems(t, err)
	require.Len(t, wrong, 9)
	require.Equal(t, "no such variable; did you mean HOLDFAST_HOLD_TTL?", wrong["HOLDFAST_HOLD_TTLS"].Right)
	require.Equal(t, "no such variable", wrong["HOLDFAST_COLOUR"].Right)
	require.Equal(t, "no such key; did you mean hold.ttl?", wrong["hold.tll"].Right)
	require.Equal(t, "no such key", wrong["colour"].Right)
	require.Contains(t, wrong["gate"].Right, "must be a section with gate.lease, gate.reopen_wait")
	require.Equal(t, "must be "+errList.Error(), wrong["redis.addrs"].Right)
	require.Equal(t, "no such key; did you mean offer.window?", wrong["offer.windo"].Right)
	require.Equal(t, "must be key=value", wrong["novalue"].Right)
	require.Contains(t, wrong["sms"].Right, "must be a section with sms.provider")
}

func TestVariablesThatAreNoKeys(t *testing.T) {
	environ(t, nil)
	for _, name := range []string{"HOLDFAST_URL", "HOLDFAST_OPS_URL", "HOLDFAST_KEY", "HOLDFAST_WEBHOOK_SECRET", "HOLDFAST_LONG", "HOLDFAST_BIN"} {
		t.Setenv(name, "something")
	}
	_, err := Load("", nil)
	require.NoError(t, err)
}

// Text that only looks like the value is refused, not rounded or guessed.
func TestValuesOfTheWrongType(t *testing.T) {
	path := write(t, "c.yaml", `
hold: {ttl: 600, grace: true}
http: {drain_seconds: 1.5, public_addr: 8080}
redis: {addrs: [1, 2], tls: 1, db: true}
secrets: {person: 12345678901234567890}
shop: {name: [a]}
tripwire: {pause: "yes please"}
`)
	environ(t, map[string]string{"redis.pool_size": "010x", "sms.segments_per_second": "fast", "offer.window": "15"})
	for _, name := range []string{"secrets.person", "shop.name"} {
		require.NoError(t, os.Unsetenv(EnvName(name)))
	}
	_, err := Load(path, nil)
	wrong := problems(t, err)
	for name, right := range map[string]error{
		"hold.ttl": errDuration, "hold.grace": errDuration, "offer.window": errDuration,
		"http.drain_seconds": errWhole, "redis.db": errWhole, "redis.pool_size": errWhole,
		"http.public_addr": errText, "secrets.person": errText, "shop.name": errText,
		"redis.addrs": errList, "redis.tls": errBool, "tripwire.pause": errBool, "sms.segments_per_second": errNumber,
	} {
		require.Equal(t, "must be "+right.Error(), wrong[name].Right, name)
		delete(wrong, name)
	}
	require.Empty(t, wrong, "a value that could not be read has one line")
	require.NotContains(t, err.Error(), "12345678901234567890")
}

func TestErrorsAreOneMessage(t *testing.T) {
	environ(t, map[string]string{"hold.ttl": "3s", "sms.provider": "fax"})
	_, err := Load("", nil)
	require.EqualError(t, err, `the configuration is not right:
  hold.ttl = 3s (HOLDFAST_HOLD_TTL): must be 5s to 2h, in whole seconds
  sms.provider = fax (HOLDFAST_SMS_PROVIDER): must be twilio or console`)
}

// unset takes a variable away until the end of the test.
func unset(t *testing.T, name string) {
	t.Helper()
	t.Setenv(name, "")
	require.NoError(t, os.Unsetenv(name))
}

// Whoever tries it for the first time is told how to set anything at all.
func TestAFirstTryIsLedOn(t *testing.T) {
	_, err := Load("", nil)
	require.ErrorContains(t, err, "HOLDFAST_SHOP_NAME")
	require.ErrorContains(t, err, "holdfast init")
	require.ErrorContains(t, err, "HOLDFAST_MODE=dev")
	t.Setenv("HOLDFAST_SHOP_NAME", "two\nlines")
	_, err = Load("", nil)
	require.ErrorContains(t, err, "HOLDFAST_SHOP_NAME")
	require.NotContains(t, err.Error(), "Nothing is set yet")
}
