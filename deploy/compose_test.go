package deploy

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/dotenv"
	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"holdfast/cli"
)

const composeFile = "docker-compose.yml"

// TestCompose loads the file as `docker compose` would, with the .env that
// `holdfast init` makes.
func TestCompose(t *testing.T) {
	require.Empty(t, newStack(t).problems(t, composeText(t)))
}

// A test that finds nothing proves nothing: each of these changes must be found.
func TestComposeMutants(t *testing.T) {
	text := composeText(t)
	stack := newStack(t)
	mutate := func(name, from, to string) {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, text, from)
			require.NotEmpty(t, stack.problems(t, strings.Replace(text, from, to, 1)))
		})
	}
	var file struct {
		Services map[string]any `yaml:"services"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &file))
	require.NotEmpty(t, file.Services)
	for name := range file.Services {
		t.Run("without "+name, func(t *testing.T) {
			require.NotEmpty(t, stack.problems(t, without(t, text, name)))
		})
	}
	mutate("a key that is none", "HOLDFAST_HTTP_OPS_ADDR:", "HOLDFAST_HTTP_OPS_ADRR:")
	mutate("another port of the door", "HOLDFAST_HTTP_API_ADDR: 0.0.0.0:8080", "HOLDFAST_HTTP_API_ADDR: 0.0.0.0:9090")
	mutate("another port of the host", "127.0.0.1:8082:8082", "127.0.0.1:9082:8082")
	mutate("a port for everybody", "127.0.0.1:8080:8080", "8080:8080")
	mutate("a bad value", "http://localhost:8233,http://127.0.0.1:8233\n  read_only", "http://localhost:8233/\n  read_only")
	mutate("no condition", "condition: service_completed_successfully\n      postgres", "condition: service_started\n      postgres")
	mutate("no health check", "test: [CMD-SHELL, \"redis-cli ping | grep -q PONG\"]", "disable: true")
	mutate("another service's health", "[CMD, /holdfast, healthcheck, worker]", "[CMD, /holdfast, healthcheck, starter]")
	mutate("a one-shot that restarts", `restart: "no"`, "restart: always")
	mutate("a Redis that forgets", "--maxmemory-policy noeviction", "--maxmemory-policy allkeys-lru")
	mutate("a Redis without its file", "--appendonly yes", "--appendonly no")
	mutate("data in the container", "redis-data:/data", "redis-data:/tmp")
	mutate("no version", "redis:7.2.16-bookworm", "redis:latest")
	mutate("two versions of Temporal", "temporalio/server:1.32.0", "temporalio/server:1.31.0")
	mutate("no codec", "TEMPORAL_CODEC_ENDPOINT: http://localhost:8081/codec", "TEMPORAL_CODEC_ENDPOINT: http://localhost:8080/codec")
	mutate("another UI", "127.0.0.1:8233:8233", "127.0.0.1:8234:8233")
	mutate("a default for a secret", "${HOLDFAST_SECRETS_MAIN:?run holdfast init}", "${HOLDFAST_SECRETS_MAIN:-sixteen-bytes-at-least}")
	mutate("another hint", "${POSTGRES_PASSWORD:?run holdfast init}", "${POSTGRES_PASSWORD:?missing}")
	mutate("the database's password", `POSTGRES_PASSWORD: "" #`, "OTHER: x #")
	mutate("killed while it drains", "stop_grace_period: 40s", "stop_grace_period: 10s")
	mutate("killed while it stops", "stop_grace_period: 30s", "stop_grace_period: 20s")
	mutate("Redis elsewhere", "HOLDFAST_REDIS_ADDRS: redis:6379", "HOLDFAST_REDIS_ADDRS: cache:6379")
	mutate("a command that is none", "command: [starter]", "command: [door]")
	mutate("a file that is not there", "./deploy/temporal.yaml", "./deploy/temporal.yml")
}

func composeText(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", composeFile))
	require.NoError(t, err)
	return string(text)
}

// without is the file without one service; nothing else is changed.
func without(t *testing.T, text, service string) string {
	t.Helper()
	var file map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &file))
	delete(file["services"].(map[string]any), service)
	out, err := yaml.Marshal(file)
	require.NoError(t, err)
	return string(out)
}

// stack is a folder with a .env, as an operator has it.
type stack struct {
	dir string
	env map[string]string
}

func newStack(t *testing.T) stack {
	t.Helper()
	for _, pair := range os.Environ() { // the shell's variables win over .env
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "HOLDFAST_") {
			t.Setenv(name, value)
			require.NoError(t, os.Unsetenv(name))
		}
	}
	var made, complaint bytes.Buffer
	require.Zero(t, cli.Main(t.Context(), []string{"init"}, cli.Streams{Out: &made, Err: &complaint}, cli.Services{}), complaint.String())
	env, err := dotenv.UnmarshalWithLookup(made.String(), nil)
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".env"), made.Bytes(), 0o600))
	require.NoError(t, os.CopyFS(filepath.Join(dir, "deploy"), os.DirFS(".")))
	return stack{dir: dir, env: env}
}

func (s stack) load(t *testing.T, text string, env map[string]string) (*types.Project, error) {
	return loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  s.dir,
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(s.dir, composeFile), Content: []byte(text)}},
		Environment: maps.Clone(env), // the loader adds to it
	}, func(o *loader.Options) { o.SetProjectName("holdfast", true) })
}

// problems are all that is wrong with the file.
func (s stack) problems(t *testing.T, text string) []string {
	t.Helper()
	project, err := s.load(t, text, s.env)
	if err != nil {
		return []string{err.Error()}
	}
	p := &findings{project: project}
	p.services()
	p.dependencies()
	p.images()
	p.published()
	p.servers()
	p.settings(t)
	p.ui()
	s.variables(t, text, p)
	return p.list
}

var variable = regexp.MustCompile(`\$\{(\w+)([^}]*)\}`)

// variables finds values of .env that are not asked for when they are missing.
func (s stack) variables(t *testing.T, text string, p *findings) {
	names := map[string]bool{}
	for _, m := range variable.FindAllStringSubmatch(text, -1) {
		names[m[1]] = true
		if m[2] != ":?run holdfast init" {
			p.add("%s does not say where it comes from", m[0])
		}
	}
	for name := range names {
		if s.env[name] == "" {
			p.add("%s is asked for, and `holdfast init` does not make it", name)
		}
		for _, gone := range []string{"missing", "empty"} {
			env := maps.Clone(s.env)
			delete(env, name)
			if gone == "empty" {
				env[name] = ""
			}
			if _, err := s.load(t, text, env); err == nil || !strings.Contains(err.Error(), "run holdfast init") || !strings.Contains(err.Error(), name) {
				p.add("%s is %s, and nobody says `run holdfast init`: %v", name, gone, err)
			}
		}
	}
	for name := range s.env {
		if !names[name] {
			p.add("%s is made by `holdfast init` and asked for nowhere", name)
		}
	}
}

type findings struct {
	project *types.Project
	list    []string
}

func (p *findings) add(format string, args ...any) {
	p.list = append(p.list, fmt.Sprintf(format, args...))
}

// services finds one that is missing or that nobody knows.
func (p *findings) services() {
	want := []string{"door", "postgres", "redis", "setup", "temporal", "temporal-schema", "temporal-ui", "worker"}
	got := p.project.ServiceNames()
	slices.Sort(got)
	if !slices.Equal(want, got) {
		p.add("the services are %v, not %v", got, want)
	}
}

func oneShot(s types.ServiceConfig) bool { return s.Restart == types.RestartPolicyNo }

// dependencies finds a service that starts before what it stands on is ready.
func (p *findings) dependencies() {
	for name, s := range p.project.Services {
		for target, d := range s.DependsOn {
			on := p.project.Services[target]
			switch {
			case d.Condition == types.ServiceConditionHealthy && !oneShot(on):
			case d.Condition == types.ServiceConditionCompletedSuccessfully && oneShot(on):
			default:
				p.add("%s waits for %s with condition %s", name, target, d.Condition)
			}
		}
		healthy := s.HealthCheck != nil && !s.HealthCheck.Disable && len(s.HealthCheck.Test) > 1
		if healthy == oneShot(s) {
			p.add("%s must either end or have a health check", name)
		}
		if !oneShot(s) && s.Restart != types.RestartPolicyUnlessStopped {
			p.add("%s is not restarted when it dies", name)
		}
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil {
				p.add("%s mounts a file that is not there: %v", name, err)
			}
		}
	}
}

var pinned = regexp.MustCompile(`^[a-z/-]+:v?\d+\.\d+(\.\d+)?(-[a-z0-9.]+)?$`)

func (p *findings) images() {
	for name, s := range p.project.Services {
		if s.Build == nil && !pinned.MatchString(s.Image) {
			p.add("%s has image %s, without its version", name, s.Image)
		}
	}
	_, server, _ := strings.Cut(p.project.Services["temporal"].Image, ":")
	_, tools, _ := strings.Cut(p.project.Services["temporal-schema"].Image, ":")
	if server != tools {
		p.add("Temporal is %s, the schema's tools are %s", server, tools)
	}
}

// published finds ports that others than this machine reach, or that have
// another number outside.
func (p *findings) published() {
	for name, s := range p.project.Services {
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" || port.Published != fmt.Sprint(port.Target) {
				p.add("%s publishes %d as %s:%s", name, port.Target, port.HostIP, port.Published)
			}
		}
	}
}

// servers finds a Redis or a database that loses what it was told.
func (p *findings) servers() {
	redis := p.project.Services["redis"]
	command := strings.Join(redis.Command, " ")
	for _, want := range []string{"--appendonly yes", "--appendfsync everysec", "--maxmemory-policy noeviction", `--requirepass "$REDISCLI_AUTH"`} {
		if !strings.Contains(command, want) {
			p.add("redis runs without %s: %s", want, command)
		}
	}
	for name, dir := range map[string]string{"redis": "/data", "postgres": "/var/lib/postgresql/data"} {
		if !slices.ContainsFunc(p.project.Services[name].Volumes, func(v types.ServiceVolumeConfig) bool {
			return v.Type == types.VolumeTypeVolume && v.Target == dir
		}) {
			p.add("%s keeps %s in its container", name, dir)
		}
	}
}
