package stack

import (
	"maps"
	"os"
	"slices"
	"strings"

	"holdfast/config"
)

// env is the environment of worker and door. What the caller's shell says of
// Holdfast and Temporal stays outside: a stack is what its Options say.
func (s *Stack) env() []string {
	set := map[string]string{
		"HOLDFAST_MODE":                    config.ModeDev, // its published secrets are defaults
		"HOLDFAST_SHOP_NAME":               "Dev Shop",
		"HOLDFAST_HTTP_PUBLIC_ADDR":        s.doorAddr,
		"HOLDFAST_HTTP_API_ADDR":           s.doorAddr,
		"HOLDFAST_HTTP_OPS_ADDR":           s.doorAddr,
		"HOLDFAST_HTTP_PUBLIC_URL":         s.URL(),
		"HOLDFAST_WORKER_OPS_ADDR":         s.workerOps,
		"HOLDFAST_REDIS_ADDRS":             s.redisAddr,
		"HOLDFAST_TEMPORAL_ADDRESS":        s.temporalAddr,
		"HOLDFAST_TEMPORAL_NAMESPACE":      s.Namespace(),
		"HOLDFAST_PAYMENT_PROVIDER":        "none",
		"HOLDFAST_SMS_PROVIDER":            "console",
		"HOLDFAST_SMS_OUTBOX":              s.TextsFile(),
		"HOLDFAST_SMS_SEGMENTS_PER_SECOND": "100", // the console costs nothing
		"HOLDFAST_JOIN_PER_PHONE":          "0",   // nobody is texted, and a developer has few numbers
	}
	if _, port := split(s.uiAt); port != "" {
		// A browser names the host as it was typed.
		set["HOLDFAST_TEMPORAL_UI_ORIGINS"] = s.UIURL() + ",http://localhost:" + port
	}
	if s.opts.RedisStandIn {
		set["HOLDFAST_GATE_FENCE"] = config.FenceOff
	}
	maps.Copy(set, s.opts.Env)

	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "HOLDFAST_") && !strings.HasPrefix(kv, "TEMPORAL_") {
			env = append(env, kv)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(set)) {
		env = append(env, k+"="+set[k])
	}
	return env
}
