package config

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

const docPath = "../docs/configuration.md"

const docHead = `# Configuration

Made of the table in ` + "`config/keys.go`" + ` by ` + "`go test ./config -run TestDocumentation -update`" + `; do not edit.

Values come from four places, the later wins: the default, the file of
` + "`--config`" + ` or ` + "`HOLDFAST_CONFIG`" + ` (YAML, TOML or JSON), the environment, and
` + "`--set key=value`" + ` on the command line (no place for secrets: others on the
machine can read it). The variable of a key is ` + "`HOLDFAST_`" + ` and the key in
capitals, with underscores for the dots: ` + "`hold.ttl`" + ` is ` + "`HOLDFAST_HOLD_TTL`" + `.
` + "`holdfast config`" + ` shows what is in effect and where it came from, without the
secrets; ` + "`holdfast config check`" + ` names everything that is wrong.

* A name that is no key stops the start, in a file and in the environment. Other
  variables with the prefix: %s.
* Durations are numbers with units: ` + "`90s`, `10m`, `48h`, `180d`, `1d12h`" + `. A bare number is
  refused.
* Lists in a variable or a flag are separated by commas.
* A value that is set but empty is empty; it is not the default. That is right
  for a text or list that may be empty, and refused for a number, a duration, a
  switch and every secret.
* ` + "`null`" + ` in a file leaves the key unset.
* A SKU may have clocks, missed turns, a limit and an end of its own: the policy of
  [api.md](api.md#get-v1stockskupolicy), or ` + "`holdfast stock policy`" + `.
* Temporal's own ` + "`TEMPORAL_*`" + ` variables and profile file count as well (TLS, API
  key and the rest); ` + "`temporal.*`" + ` here wins over them.

| key | default | right | meaning |
|---|---|---|---|
`

// documentation is the whole page.
func documentation() string {
	var b strings.Builder
	fmt.Fprintf(&b, docHead, "`"+strings.Join(otherVariables, "`, `")+"`")
	cell := strings.NewReplacer("|", `\|`, "\n", " ")
	for _, k := range keys {
		right := k.rule.right
		if right == "" {
			right = "any text"
		}
		def := "`" + k.show(k.def) + "`"
		if def == "`\"\"`" || def == "`(empty)`" {
			def = "none"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.name, def, cell.Replace(right), cell.Replace(k.doc))
	}
	return b.String()
}

func TestDocumentation(t *testing.T) {
	want := documentation()
	if *update {
		require.NoError(t, os.WriteFile(docPath, []byte(want), 0o644))
	}
	got, err := os.ReadFile(docPath)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "docs/configuration.md is behind config/keys.go: go test ./config -run TestDocumentation -update")
}
