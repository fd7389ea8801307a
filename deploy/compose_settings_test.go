package deploy

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"

	"holdfast/cli"
	"holdfast/config"
)

// shutdown is how long the door finishes requests after http.drain_seconds, mostStop how
// long a worker takes at most.
const shutdown, mostStop = 15 * time.Second, 25 * time.Second

// defaults are the settings' defaults by key.
func defaults() map[string]string {
	all := map[string]string{}
	cfg, err := config.Load("", []string{
		"mode=dev", "shop.name=x", "sms.provider=console", "payment.provider=none", "http.public_url=http://localhost",
	})
	if err != nil {
		panic(err)
	}
	for _, s := range cfg.Masked() {
		all[s.Key] = s.Value
	}
	return all
}

func port(addr string) string {
	_, p, _ := net.SplitHostPort(addr)
	return p
}

// settings finds what the product would not understand, and ports that are not
// the ones of the documentation.
func (p *findings) settings(t *testing.T) {
	names := map[string]string{}
	for key := range defaults() {
		names[config.EnvName(key)] = key
	}
	for name, command := range map[string]string{"setup": "setup", "worker": "worker", "door": "starter"} {
		s, there := p.project.Services[name]
		if !there {
			continue
		}
		if s.Build == nil || !slices.Equal(s.Command, types.ShellCommand{command}) {
			p.add("%s runs %v", name, s.Command)
		}
		if s.HealthCheck != nil && !slices.Equal(s.HealthCheck.Test, types.HealthCheckTest{"CMD", "/holdfast", "healthcheck", command}) {
			p.add("%s is asked for its health by %v", name, s.HealthCheck.Test)
		}
		if !s.ReadOnly || !slices.Contains(s.CapDrop, "ALL") {
			p.add("%s may do more than it needs", name)
		}
		env := map[string]string{}
		for n, v := range s.Environment {
			if v != nil {
				env[n] = *v
			}
			if _, known := names[n]; strings.HasPrefix(n, "HOLDFAST_") && !known {
				p.add("%s: %s is no key", name, n)
			}
		}
		if env["POSTGRES_PASSWORD"] != "" {
			p.add("%s is told the password of Temporal's database", name)
		}
		cfg, err := understood(t, env, command)
		if err != nil {
			p.add("%s: %v", name, err)
			continue
		}
		p.addresses(name, cfg, s)
	}
}

// understood gives a service its environment and lets its command read it, as
// the container does.
func understood(t *testing.T, env map[string]string, command string) (got *config.Config, err error) {
	before := map[string]string{}
	for name, value := range env {
		if had, ok := os.LookupEnv(name); ok {
			before[name] = had
		}
		require.NoError(t, os.Setenv(name, value))
	}
	defer func() {
		for name := range env {
			if had, ok := before[name]; ok {
				require.NoError(t, os.Setenv(name, had))
			} else {
				require.NoError(t, os.Unsetenv(name))
			}
		}
	}()
	run := func(_ context.Context, cfg *config.Config, _ *slog.Logger) error { got = cfg; return nil }
	var complaint bytes.Buffer
	code := cli.Main(t.Context(), []string{command}, cli.Streams{Out: &complaint, Err: &complaint}, cli.Services{
		Worker: run, Starter: run,
		SetUp: func(ctx context.Context, cfg *config.Config, _ time.Duration, log *slog.Logger) error {
			return run(ctx, cfg, log)
		},
	})
	if code != 0 || got == nil {
		return nil, fmt.Errorf("holdfast %s ends with code %d: %s", command, code, complaint.String())
	}
	return got, nil
}

func (p *findings) addresses(name string, cfg *config.Config, s types.ServiceConfig) {
	if cfg.Mode != config.ModeProduction || len(cfg.Secrets.PayloadKeys) == 0 || cfg.Redis.Password == "" {
		p.add("%s runs in mode %s, or without encryption or Redis' password", name, cfg.Mode)
	}
	def := defaults()
	own := map[string]map[string]string{ // where each service listens
		"door":   {"http.public_addr": cfg.HTTP.PublicAddr, "http.api_addr": cfg.HTTP.APIAddr, "http.ops_addr": cfg.HTTP.OpsAddr},
		"worker": {"worker.ops_addr": cfg.Worker.OpsAddr},
	}[name]
	for key, addr := range own {
		if addr != "0.0.0.0:"+port(def[key]) {
			p.add("%s: %s is %s, the default's port is %s", name, key, addr, port(def[key]))
		}
		if !slices.ContainsFunc(s.Ports, func(c types.ServicePortConfig) bool { return fmt.Sprint(c.Target) == port(addr) }) {
			p.add("%s does not publish %s", name, addr)
		}
	}
	for key, addr := range map[string]string{"redis.addrs": strings.Join(cfg.Redis.Addrs, ","), "temporal.address": cfg.Temporal.Address} {
		host, at, _ := net.SplitHostPort(addr)
		if d, waits := s.DependsOn[host]; name != "setup" && (!waits || d.Condition != types.ServiceConditionHealthy) {
			p.add("%s does not wait for %s of %s", name, host, key)
		}
		if want := port(def[key]); want != "" && at != want {
			p.add("%s: %s has port %s, the default is %s", name, key, at, want)
		}
	}
	patience := time.Duration(0)
	if s.StopGracePeriod != nil {
		patience = time.Duration(*s.StopGracePeriod)
	}
	need := map[string]time.Duration{"door": time.Duration(cfg.HTTP.DrainSeconds)*time.Second + shutdown, "worker": mostStop}[name]
	if patience <= need && need > 0 {
		p.add("%s is killed after %s, it may need %s", name, patience, need)
	}
}

// ui finds a UI that cannot read what Temporal was told: its endpoint is the
// door's ops listener, and the door believes the address at which it is open.
func (p *findings) ui() {
	ui, door := p.project.Services["temporal-ui"], p.project.Services["door"]
	value := func(s types.ServiceConfig, name string) string {
		if v := s.Environment[name]; v != nil {
			return *v
		}
		return ""
	}
	ops := port(value(door, "HOLDFAST_HTTP_OPS_ADDR"))
	if got := value(ui, "TEMPORAL_CODEC_ENDPOINT"); got != "http://localhost:"+ops+"/codec" {
		p.add("the UI decrypts by %q", got)
	}
	if len(ui.Ports) != 1 || value(ui, "TEMPORAL_UI_PORT") != ui.Ports[0].Published {
		p.add("the UI is not where it says")
		return
	}
	for _, host := range []string{"localhost", "127.0.0.1"} {
		origin := "http://" + host + ":" + ui.Ports[0].Published
		for s, name := range map[*types.ServiceConfig]string{&door: "HOLDFAST_TEMPORAL_UI_ORIGINS", &ui: "TEMPORAL_CORS_ORIGINS"} {
			if !slices.Contains(strings.Split(value(*s, name), ","), origin) {
				p.add("%s of %s lacks %s", name, s.Name, origin)
			}
		}
	}
	if value(ui, "TEMPORAL_DEFAULT_NAMESPACE") != value(door, "HOLDFAST_TEMPORAL_NAMESPACE") {
		p.add("the UI shows another namespace")
	}
}
