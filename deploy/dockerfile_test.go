package deploy

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// instructions are the lines of the Dockerfile, by stage.
func instructions(t *testing.T) [][]string {
	t.Helper()
	text, err := os.ReadFile("../Dockerfile")
	require.NoError(t, err)
	var stages [][]string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case strings.HasPrefix(line, "FROM "):
			stages = append(stages, nil)
		}
		require.NotEmpty(t, stages, "nothing stands before the first FROM")
		stages[len(stages)-1] = append(stages[len(stages)-1], line)
	}
	return stages
}

func TestDockerfile(t *testing.T) {
	stages := instructions(t)
	require.Len(t, stages, 2)
	build, final := strings.Join(stages[0], "\n"), strings.Join(stages[1], "\n")

	module, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	least := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(module))
	require.NotNil(t, least)
	require.Regexp(t, `^FROM golang:`+regexp.QuoteMeta(least[1])+`\.\d+-[a-z]+ AS build\n`, build, "Go of this version, pinned")
	require.Regexp(t, `(?m)^RUN CGO_ENABLED=0 go build .* -o /holdfast \.$`, build, "a static program")

	require.Regexp(t, `^FROM scratch\n`, final)
	require.Regexp(t, `(?m)^USER [1-9]\d*:[1-9]\d*$`, final, "not root, by number: the image has no list of users")
	require.Contains(t, final, `ENTRYPOINT ["/holdfast"]`)
	require.Contains(t, final, "ca-certificates.crt", "Twilio and Stripe are asked over TLS")
	def := defaults()
	for _, key := range []string{"http.public_addr", "http.api_addr", "http.ops_addr", "worker.ops_addr"} {
		require.Regexp(t, `(?m)^EXPOSE .*\b`+port(def[key])+`\b`, final, key)
	}

	ignored, err := os.ReadFile("../.dockerignore")
	require.NoError(t, err)
	require.Contains(t, strings.Split(string(ignored), "\n"), ".env", "no image holds the secrets")
	untracked, err := os.ReadFile("../.gitignore")
	require.NoError(t, err)
	require.Contains(t, strings.Split(string(untracked), "\n"), "/.env")
}
