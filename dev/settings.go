package main

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"

	"holdfast/config"
	"holdfast/dev/stack"
)

// Variables of `make dev`.
const (
	varHold     = "HOLD_SECONDS"
	varOffer    = "OFFER_SECONDS"
	varDoor     = "DOOR_PORT"
	varTemporal = "TEMPORAL_PORT"
	varUI       = "UI_PORT"
	varRedis    = "REDIS_PORT"
	varReset    = "RESET"
	varTwilio   = "TWILIO" // "stub": a stand-in of Twilio in place of the console
	// Servers that run already.
	varTemporalAddress = "TEMPORAL_ADDRESS"
	varRedisAddress    = "REDIS_ADDRESS"
)

// settings are what the variables say.
type settings struct {
	holdSeconds, offerSeconds                 int // 0: the product's default
	doorPort, temporalPort, uiPort, redisPort int
	redisAddress, temporalAddress             string
	reset, twilio                             bool
	env                                       map[string]string // for worker and door
}

// readSettings reads environ, name=value each. The error lists all that is
// wrong.
func readSettings(environ []string) (settings, error) {
	vars := map[string]string{}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		vars[name] = value
	}
	var errs []error
	number := func(name string, otherwise, least, most int) int {
		text := vars[name]
		if text == "" {
			return otherwise
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			errs = append(errs, fmt.Errorf("%s is %q, it must be a whole number from %d to %d", name, text, least, most))
		}
		return n
	}
	address := func(name string) string {
		text := vars[name]
		if _, _, err := net.SplitHostPort(text); text != "" && err != nil {
			errs = append(errs, fmt.Errorf("%s is %q, it must be host:port", name, text))
		}
		return text
	}
	s := settings{
		holdSeconds:     number(varHold, 0, 5, 2*60*60),
		offerSeconds:    number(varOffer, 0, 5, 48*60*60),
		doorPort:        number(varDoor, 8080, 1, 65535),
		temporalPort:    number(varTemporal, 7233, 1, 65535),
		uiPort:          number(varUI, 8233, 1, 65535),
		redisPort:       number(varRedis, 6380, 1, 65535),
		redisAddress:    address(varRedisAddress),
		temporalAddress: address(varTemporalAddress),
		reset:           number(varReset, 0, 0, 1) == 1,
		twilio:          vars[varTwilio] == "stub",
		env:             map[string]string{},
	}
	if v := vars[varTwilio]; v != "" && v != "stub" {
		errs = append(errs, fmt.Errorf("%s is %q, it must be stub, or not set", varTwilio, v))
	}
	// A press shows the countdown: the checkout of the two SKUs leads nowhere.
	s.env["HOLDFAST_HOLD_AFTER"] = "page"
	// Temporal is told in cipher, as in earnest; its UI asks the door to decrypt.
	s.env["HOLDFAST_SECRETS_PAYLOAD_KEYS"] = config.DevPayloadKey
	// After each start the gate stays closed for reopen_wait, and a developer
	// starts often. It must not be shorter than the lease.
	if _, set := vars["HOLDFAST_GATE_LEASE"]; !set {
		s.env["HOLDFAST_GATE_LEASE"], s.env["HOLDFAST_GATE_REOPEN_WAIT"] = "5s", "5s"
	}
	if s.holdSeconds > 0 {
		s.env["HOLDFAST_HOLD_TTL"] = fmt.Sprintf("%ds", s.holdSeconds)
	}
	if s.offerSeconds > 0 {
		s.env["HOLDFAST_OFFER_WINDOW"] = fmt.Sprintf("%ds", s.offerSeconds)
	}
	maps.Copy(s.env, productVariables(vars, s.temporalAddress != ""))
	return s, errors.Join(errs...)
}

// productVariables are those of the shell that worker and door get: all of
// Holdfast, and those of Temporal's clients when Temporal runs elsewhere.
func productVariables(vars map[string]string, temporalElsewhere bool) map[string]string {
	env := map[string]string{}
	for name, value := range vars {
		if strings.HasPrefix(name, "HOLDFAST_") || temporalElsewhere && strings.HasPrefix(name, "TEMPORAL_") {
			env[name] = value
		}
	}
	if ns := vars["TEMPORAL_NAMESPACE"]; temporalElsewhere && ns != "" {
		env["HOLDFAST_TEMPORAL_NAMESPACE"] = ns
	}
	return env
}

func (s settings) options(dir string) stack.Options {
	local := func(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
	return stack.Options{
		Dir: dir, Holdfast: holdfastBin, TemporalBin: temporalBin,
		RedisAddr: local(s.redisPort), TemporalAddr: local(s.temporalPort),
		DoorAddr: local(s.doorPort), UIAddr: local(s.uiPort), UI: true,
		External:  stack.External{Redis: s.redisAddress, Temporal: s.temporalAddress},
		Env:       s.env,
		Supervise: true,
	}
}

// portVariable is the variable that moves the port of a child.
func portVariable(child string) string {
	return map[string]string{
		stack.Door: varDoor, stack.Temporal: varTemporal, stack.UI: varUI, stack.Redis: varRedis,
	}[child]
}
