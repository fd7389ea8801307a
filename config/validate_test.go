package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// bad is values by key that are refused with one line for that key.
var bad = map[string][]string{
	"mode":                    {"prod", ""},
	"shop.name":               {"", " ", strings.Repeat("x", 61), "a\nb"},
	"shop.locale":             {"", "english", "x!"},
	"http.public_addr":        {"", "localhost", "localhost:http", ":65536"},
	"http.api_addr":           {"8080"},
	"http.ops_addr":           {"::1:8080"},
	"worker.ops_addr":         {"8082"},
	"http.public_url":         {"", "stoelen.example", "ftp://stoelen.example", "https://stoelen.example/", "http://stoelen.example", "https://u:p@stoelen.example", "https://stoelen.example?a=b", "https:///path", "https://bit.ly", "https://BIT.LY", "https://shop.short.io", "https://tinyurl.com./x", "https://t.co:8443"},
	"http.drain_seconds":      {"-1", "601", "1.5", ""},
	"http.trusted_proxies":    {"proxy", "10.0.0.0/33", "10.0.0.1,", "10.0.0.1:80", "fe80::1%eth0"},
	"redis.addrs":             {"", "localhost", "a:1,,b:2"},
	"redis.db":                {"-1", "1001", ""},
	"redis.tls":               {"maybe", ""},
	"redis.pool_size":         {"0", "10001", ""},
	"redis.timeout":           {"9ms", "31s", "2", ""},
	"temporal.address":        {"localhost"},
	"temporal.ui_origins":     {"temporal.example", "https://temporal.example/", "https://Temporal.example", "https://temporal.example:443", "http://temporal.example:80", "*", "https://temporal.example/ui", "https://temporal.example", "https://a.example,"},
	"worker.deployment":       {"", "shop.eu", "shop:eu", "__shop", "a b", strings.Repeat("x", 101)},
	"worker.build_id":         {"1:2", "__v1", "a b", ".1", strings.Repeat("x", 101)},
	"worker.max_tasks":        {"1", "100001", ""},
	"worker.max_activities":   {"0", "-1", ""},
	"gate.lease":              {"1s", "61s", ""},
	"gate.reopen_wait":        {"9s", "61m", "10500ms", "-1s", ""},
	"gate.record_retention":   {"0", "-1h", "59s", ""},
	"gate.sale_retention":     {"0", "-400d", ""},
	"gate.fence":              {"", "maybe"},
	"hold.ttl":                {"4s", "2h1s", "10500ms", "0", "-10m", "600", ""},
	"hold.extension":          {"-1s", "2h1s", "1500ms", ""},
	"hold.grace":              {"-1s", "10m1s", "500ms", ""},
	"hold.after":              {"", "shop"},
	"offer.window":            {"4s", "169h", "5500ms", ""},
	"offer.max_age":           {"14m59s", "31d", "0", ""},
	"waitlist.ttl":            {"4s", "401d", "400d1s", ""},
	"join.max_backlog":        {"0", "-1", ""},
	"join.workers":            {"0", "1001", ""},
	"join.per_phone":          {"-1", "1000001", ""},
	"join.per_address":        {"-1", ""},
	"sms.segments_a_day":      {"-1", ""},
	"sms.allowed_regions":     {"us", "XX", "US,", "USA"},
	"missed.keep":             {"101", "-1", ""},
	"quiet.from":              {"", "9:00", "24:00", "10pm", "22:00:00"},
	"quiet.to":                {"", "8", "21:01", "08:60"},
	"quiet.zone":              {"EST", "Local", "Europe/Londn", "+01:00"},
	"quiet.max_wait":          {"4s", "169h", "5500ms", "0", ""},
	"sms.provider":            {"", "Twilio", "none"},
	"sms.segments_per_second": {"0", "-1", "NaN", "Inf", ""},
	"sms.sent_grace":          {"-1s", "61m", "1500ms", ""},
	"sms.twilio.base_url":     {"twilio", "ftp://x", "http://twilio.example", "https://u:p@twilio.example"},
	"payment.provider":        {"Stripe", "both", ""},
	"payment.timeout":         {"999ms", "61s", "10", ""},
	"payment.stripe.unnamed":  {"", "List", "refund"},
	"payment.stripe.base_url": {"stripe", "ftp://x", "http://stripe.example", "https://u:p@stripe.example"},
	"metrics.skus":            {"a b", "A,B,A", "A,", strings.Repeat("A,", 50) + "B"},
	"phone.default_region":    {"", "us", "XX", "USA"},
	"secrets.person":          {"", "123456789012345", " padded-secret-of-16 ", DevPersonSecret},
	"secrets.main":            {"", "short", DevMainSecret},
	"secrets.links":           {"", "secret-without-an-id", "256:aaaaaaaaaaaaaaaa", "-1:aaaaaaaaaaaaaaaa", "1:short", "1:aaaaaaaaaaaaaaaa,1:bbbbbbbbbbbbbbbb", "1:aaaaaaaaaaaaaaaa,01:bbbbbbbbbbbbbbbb", "1:aaaaaaaaaaaaaaaa,", "1:" + DevLinkSecret},
	"secrets.api_keys":        {"", "secret-without-a-caller", ":aaaaaaaaaaaaaaaa", "shop:short", "a b:aaaaaaaaaaaaaaaa", "a:aaaaaaaaaaaaaaaa,b:aaaaaaaaaaaaaaaa", "dev:dev"},
	"secrets.inventory":       {"", "aW52ZW50b3J5LW9mLXRoZS10ZXN0", "whsec_", "whsec_!!!", "whsec_c2hvcnQ=", DevWebhookSecret, "whsec_aW52ZW50b3J5LW9mLXRoZS10ZXN0,whsec_aW52ZW50b3J5LW9mLXRoZS10ZXN0"},
	"secrets.payload_keys":    {"", keyA, "a.b:" + keyA, ":" + keyA, "a:" + keyA[:40], "a:" + keyA[1:], "a:c2hvcnQ=", "a:" + keyA + ",a:" + keyB, "a:" + keyA + ",", DevPayloadKey, "other" + DevPayloadKey},
}

func TestEveryBadValueHasItsLine(t *testing.T) {
	for name, values := range bad {
		for _, value := range values {
			t.Run(fmt.Sprintf("%s=%.20q", name, value), func(t *testing.T) {
				set := map[string]string{name: value}
				if name == "offer.window" {
					set["offer.max_age"] = "30d"
				}
				if strings.HasPrefix(name, "quiet.") {
					set["quiet.zone"] = cmp.Or(set["quiet.zone"], "Europe/London")
				}
				if name == "temporal.ui_origins" {
					set["http.ops_addr"] = known["http.public_addr"].def.(string)
				}
				environ(t, set)
				_, err := Load("", nil)
				wrong := problems(t, err)
				require.Len(t, wrong, 1)
				require.Equal(t, EnvName(name), wrong[name].Source)
				if known[name].secret && value != "" && value != webhookPrefix {
					require.NotContains(t, err.Error(), value)
				}
			})
		}
	}
}

func TestAllProblemsInOneMessage(t *testing.T) {
	all := map[string]string{}
	for name, values := range bad {
		all[name] = values[len(values)-1]
	}
	all["offer.max_age"], all["gate.reopen_wait"] = "31d", "61m" // whatever the keys they depend on say
	environ(t, all)
	t.Setenv("HOLDFAST_COLOUR", "red")
	_, err := Load(write(t, "c.yaml", "colour: red"), []string{"color=red"})
	wrong := problems(t, err)
	for name := range all {
		require.Contains(t, wrong, name)
	}
	require.Len(t, wrong, len(all)+3)
	require.Len(t, strings.Split(err.Error(), "\n"), len(wrong)+1, "one line a problem")
}

// The machine's own zone is never guessed for the shop's.
func TestQuietHoursWantTheirZone(t *testing.T) {
	hours := map[string]string{"quiet.from": "22:00", "quiet.to": "08:00"}
	environ(t, hours)
	_, err := Load("", nil)
	require.Equal(t, []string{"quiet.zone"}, slices.Sorted(maps.Keys(problems(t, err))))

	hours["quiet.zone"] = "Europe/London"
	environ(t, hours)
	cfg, err := Load("", nil)
	require.NoError(t, err)
	require.Equal(t, Quiet{From: "22:00", To: "08:00", Zone: "Europe/London", MaxWait: 12 * time.Hour}, cfg.Quiet)
}

func TestEdgesAreRight(t *testing.T) {
	for name, values := range map[string][]string{
		"hold.ttl":             {"5s", "2h", "7200s"},
		"hold.extension":       {"0", "0s"},
		"hold.grace":           {"0", "10m"},
		"offer.window":         {"5s", "48h"},
		"offer.max_age":        {"15m", "30d"},
		"waitlist.ttl":         {"5s", "400d", "9600h"},
		"gate.lease":           {"2s", "60s"},
		"gate.reopen_wait":     {"10s", "1h", "0"},
		"http.public_url":      {"http://127.0.0.1:8080", "http://localhost", "http://[::1]:80", "https://stoelen.example/wait", "https://rabbit.ly", "https://bit.ly.stoelen.example"},
		"secrets.links":        {"0:aaaaaaaaaaaaaaaa,255:a:b:c:d:e:f:g:hh"},
		"secrets.api_keys":     {"shop:aaaaaaaaaaaaaaaa,shop:bbbbbbbbbbbbbbbb"},
		"temporal.address":     {""},
		"temporal.ui_origins":  {""},
		"secrets.payload_keys": {"2026-11:" + keyA, "b:" + keyB + ",a:" + keyA},
		"sms.outbox":           {""},
		"quiet.from":           {"00:00"},
		"quiet.to":             {"00:00"},
		"quiet.zone":           {"", "UTC", "Australia/Lord_Howe"},
		"quiet.max_wait":       {"5s", "7d"},
		"payment.timeout":      {"1s", "60s", "2500ms"},
		"phone.default_region": {"NL"},
	} {
		for _, value := range values {
			t.Run(name+"="+value, func(t *testing.T) {
				environ(t, map[string]string{name: value})
				_, err := Load("", nil)
				require.NoError(t, err)
			})
		}
	}
}

func TestClusterHasNoDatabases(t *testing.T) {
	environ(t, map[string]string{"redis.addrs": "a:1,b:2", "redis.db": "1"})
	_, err := Load("", nil)
	require.Contains(t, problems(t, err), "redis.db")
	environ(t, map[string]string{"redis.addrs": "a:1", "redis.db": "1"})
	_, err = Load("", nil)
	require.NoError(t, err)
}

// Who believes that a request comes from the UI must not listen to everybody.
func TestTheUIIsBelievedOnAListenerApart(t *testing.T) {
	const ui = "https://temporal.example"
	const pages = "127.0.0.1:8080"
	environ(t, map[string]string{"temporal.ui_origins": ui, "http.public_addr": pages})
	_, err := Load("", nil)
	require.NoError(t, err, "the default listens apart")
	environ(t, map[string]string{"temporal.ui_origins": ui, "http.public_addr": pages, "http.ops_addr": pages, "mode": "dev"})
	_, err = Load("", nil)
	require.NoError(t, err)
	environ(t, map[string]string{"temporal.ui_origins": ui, "http.public_addr": pages, "http.ops_addr": pages})
	_, err = Load("", nil)
	require.Contains(t, problems(t, err)["temporal.ui_origins"].Right, "whoever reaches that listener can claim to be the UI")
}

func TestPayloadKey(t *testing.T) {
	id, key, ok := PayloadKey(DevPayloadKey)
	require.True(t, ok)
	require.Equal(t, "dev", id)
	require.Len(t, key, payloadKeyBytes)
}

func TestReopenWaitFollowsTheLease(t *testing.T) {
	environ(t, map[string]string{"gate.lease": "40s"})
	cfg, err := Load("", nil)
	require.NoError(t, err)
	require.Equal(t, 50*time.Second, cfg.Gate.ReopenWait)
}

func TestDurationsMayCountDays(t *testing.T) {
	environ(t, map[string]string{"waitlist.ttl": "1d12h"})
	cfg, err := Load("", nil)
	require.NoError(t, err)
	require.Equal(t, 36*time.Hour, cfg.Waitlist.TTL)

	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, 3650*24*3600).Draw(t, "seconds")) * time.Second
		got, err := parseDuration(formatDuration(d))
		require.NoError(t, err)
		require.Equal(t, d, got)
	})
	for _, s := range []string{"d", "1d-1h", "1d24h", "999999d", "1.5d", "-1d", "1d1"} {
		_, err := parseDuration(s)
		require.Error(t, err, s)
	}
}

// B123: a secret that is set to nothing stops the start, needed or not.
func TestEmptySecretsStopTheStart(t *testing.T) {
	for _, k := range keys {
		if !k.secret {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			for _, mode := range []string{ModeProduction, ModeDev} {
				environ(t, map[string]string{k.name: "", "mode": mode})
				_, err := Load("", nil)
				wrong := problems(t, err)
				require.Len(t, wrong, 1)
				require.Contains(t, wrong[k.name].Right, "is set, but to nothing")
			}
		})
	}
	environ(t, nil)
	_, err := Load(write(t, "c.yaml", "redis: {password: ''}"), nil)
	require.Contains(t, problems(t, err), "redis.password")
}

func TestPublishedSecretsOnlyInDev(t *testing.T) {
	environ(t, map[string]string{"mode": "dev"})
	cfg, err := Load("", nil)
	require.NoError(t, err)
	require.Equal(t, base["secrets.person"], cfg.Secrets.Person, "a default, no more")

	dev := map[string]string{
		"secrets.person":    DevPersonSecret,
		"secrets.main":      DevMainSecret,
		"secrets.links":     "1:" + DevLinkSecret,
		"secrets.api_keys":  "dev:" + DevAPIKey,
		"secrets.inventory": DevWebhookSecret,

		"secrets.payload_keys": DevPayloadKey,
	}
	environ(t, dev)
	_, err = Load("", nil)
	wrong := problems(t, err)
	require.Len(t, wrong, len(dev))
	for name := range dev {
		require.Contains(t, wrong[name].Right, "published secret", name)
	}

	// Another spelling of the same bytes is the same secret.
	environ(t, map[string]string{"secrets.inventory": "whsec_aG9sZGZhc3QtZGV2LXdlYmhvb2t="})
	_, err = Load("", nil)
	require.Contains(t, problems(t, err), "secrets.inventory")

	environ(t, map[string]string{"mode": "dev"})
	for name := range dev {
		unset(t, EnvName(name))
	}
	cfg, err = Load("", nil)
	require.NoError(t, err)
	require.Equal(t, Secrets{
		Person: DevPersonSecret, Main: DevMainSecret, Links: []string{"1:" + DevLinkSecret},
		APIKeys: []string{"dev:dev"}, Inventory: []string{"whsec_aG9sZGZhc3QtZGV2LXdlYmhvb2s="},
		PayloadKeys: []string{}, // mode dev accepts the published one, and does not need it
	}, cfg.Secrets)
	require.Equal(t, "default of mode dev", cfg.sources["secrets.main"])
}

// ofTheShop is what a shop that texts must say of itself.
var ofTheShop = map[string]string{
	"shop.terms_url": "https://stoelen.example/terms", "shop.privacy_url": "https://stoelen.example/privacy", "shop.support": "help@stoelen.example",
}

func TestTwilioNeedsItsAccount(t *testing.T) {
	sid, token, service := "AC"+strings.Repeat("0a", 16), "token", "MG"+strings.Repeat("1b", 16)
	for name, c := range map[string]struct {
		sid, token, from, service string
		wrong                     []string
	}{
		"nothing":        {wrong: []string{"sms.twilio.account_sid", "sms.twilio.auth_token", "sms.twilio.from"}},
		"number":         {sid: sid, token: token, from: "+15005550006"},
		"service":        {sid: sid, token: token, service: service},
		"both":           {sid: sid, token: token, from: "+15005550006", service: service, wrong: []string{"sms.twilio.from"}},
		"broken sid":     {sid: sid[1:], token: token, from: "+15005550006", wrong: []string{"sms.twilio.account_sid"}},
		"broken service": {sid: sid, token: token, service: "MG1", wrong: []string{"sms.twilio.messaging_service"}},
	} {
		t.Run(name, func(t *testing.T) {
			set := maps.Clone(ofTheShop)
			maps.Copy(set, map[string]string{
				"sms.provider": "twilio", "sms.twilio.account_sid": c.sid, "sms.twilio.from": c.from, "sms.twilio.messaging_service": c.service,
			})
			environ(t, set)
			if c.token != "" {
				t.Setenv("HOLDFAST_SMS_TWILIO_AUTH_TOKEN", c.token)
			}
			_, err := Load("", nil)
			if len(c.wrong) == 0 {
				require.NoError(t, err)
				return
			}
			got := problems(t, err)
			require.Len(t, got, len(c.wrong))
			for _, name := range c.wrong {
				require.Contains(t, got, name)
			}
		})
	}
}

func TestWhoTextsSaysWhoTheyAre(t *testing.T) {
	for _, c := range []struct{ name, value string }{
		{"shop.terms_url", ""},
		{"shop.terms_url", "stoelen.example/terms"},
		{"shop.privacy_url", ""},
		{"shop.privacy_url", "http://stoelen.example/privacy"},
		{"shop.support", ""},
		{"shop.support", "ask Jan"},
		{"shop.support", "Jan <jan@stoelen.example>"},
		{"shop.support", "http://stoelen.example/help"},
	} {
		set := maps.Clone(ofTheShop)
		maps.Copy(set, map[string]string{
			"sms.provider": "twilio", "sms.twilio.account_sid": "AC" + strings.Repeat("0a", 16), "sms.twilio.auth_token": "token",
			"sms.twilio.from": "+15005550006", c.name: c.value,
		})
		environ(t, set)
		_, err := Load("", nil)
		wrong := problems(t, err)
		require.Len(t, wrong, 1, "%s = %q", c.name, c.value)
		require.Contains(t, wrong, c.name)
	}
	environ(t, map[string]string{"shop.support": "", "shop.terms_url": "anything"})
	_, err := Load("", nil)
	require.NoError(t, err, "the console texts nobody")
}

func TestValidateOfAHandMadeConfig(t *testing.T) {
	environ(t, nil)
	cfg, err := Load("", nil)
	require.NoError(t, err)
	require.NoError(t, cfg.Validate())
	cfg.Hold.TTL = time.Second
	cfg.Hold.Grace = time.Hour
	require.Len(t, problems(t, cfg.Validate()), 2)
}

func TestNoSecretIsShown(t *testing.T) {
	const mark = "do-not-show-me-ever"
	environ(t, map[string]string{
		"redis.password": mark, "sms.twilio.auth_token": mark, "payment.provider": "stripe", "payment.stripe.key": "sk_live_" + mark,
		"payment.stripe.webhook_secrets": "whsec_" + mark, "payment.webhook.secrets": "whsec_" + mark, "payment.webhook.url": "https://shop.example", "secrets.person": mark + "1", "secrets.main": mark + "2",
		"secrets.links": "1:" + mark, "secrets.api_keys": "shop:" + mark, "secrets.inventory": "whsec_ZG8tbm90LXNob3ctbWUtZXZlcg==",
		"secrets.payload_keys": "a:ZG8tbm90LXNob3ctbWUtZXZlci1kby1ub3Qtc2hvdy0=",
	})
	cfg, err := Load("", nil)
	require.NoError(t, err)

	var shown bytes.Buffer
	require.NoError(t, json.NewEncoder(&shown).Encode(cfg.Masked()))
	slog.New(slog.NewJSONHandler(&shown, nil)).Info("x", "config", cfg, "copy", *cfg, "secrets", cfg.Secrets)
	slog.New(slog.NewTextHandler(&shown, nil)).Info("x", "config", cfg, "copy", *cfg, "secrets", cfg.Secrets)
	fmt.Fprintf(&shown, "%v %+v %s %v %+v %v", cfg, cfg, cfg, *cfg, *cfg, cfg.Secrets)
	fmt.Fprintf(&shown, "%v %+v %s %v %+v", cfg.Payment, cfg.Payment, cfg.Payment, cfg.Payment.Stripe, &cfg.Payment.Webhook)
	slog.New(slog.NewTextHandler(&shown, nil)).Info("x", "payment", cfg.Payment, "stripe", cfg.Payment.Stripe, "webhook", cfg.Payment.Webhook)
	require.NotContains(t, shown.String(), mark)
	require.NotContains(t, shown.String(), "ZG8tbm90")
	require.Contains(t, shown.String(), "hold.ttl", "it shows the rest")

	// Every field of Secrets is a secret key, and so is all that is called one.
	for name := range leaves(reflect.TypeFor[Config](), "") {
		if strings.HasPrefix(name, "secrets.") || strings.Contains(name, "password") || strings.Contains(name, "token") || strings.Contains(name, "secret") || strings.HasSuffix(name, ".key") {
			require.True(t, known[name].secret, name)
		}
	}
}
