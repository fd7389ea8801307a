package workflows_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"holdfast/contract"
	"holdfast/events"
	"holdfast/workflows"
)

var rewrite = flag.Bool("update-events", false, "write the examples into docs/events.md")

const eventsDoc = "../docs/events.md"

// exampleOf names the story that an example is taken from, and which event of its
// type.
var exampleOf = map[string]string{
	contract.EventHoldCreated:       "a hold that is paid",
	contract.EventHoldExtended:      "a hold that is paid",
	contract.EventHoldConfirmed:     "a hold that is paid",
	contract.EventHoldReleased:      "a hold that is given back",
	contract.EventHoldExpired:       "a hold that expires",
	contract.EventRefundSettled:     "money that goes back",
	contract.EventPaymentUnmatched:  "money for a hold that nobody knows",
	contract.EventPaymentUnresolved: "",
	contract.EventWaitlistJoined:    "an offer that lapses",
	contract.EventWaitlistOffered:   "an offer that lapses",
	contract.EventWaitlistClaimed:   "a press, which is news of the entry",
	contract.EventWaitlistLapsed:    "an offer that lapses",
	contract.EventWaitlistLeft:      "an entry that leaves",
	contract.EventWaitlistExpired:   "an entry that expires",
	contract.EventStockChanged:      "stock that moves",
	contract.EventStockRejected:     "stock that moves",
	contract.EventStockShortfall:    "stock that moves",
}

// example is the body of the first event of a type in its story, as it is sent.
func example(t *testing.T, kind, story string) string {
	w := newWorld(t)
	w.tells()
	if story == "" {
		w.RegisterWorkflowWithOptions(workflows.Unresolved, workflow.RegisterOptions{Name: "Unresolved"})
		w.ExecuteWorkflow("Unresolved", holdInput())
		require.NoError(t, w.GetWorkflowError())
	} else {
		stories[story].play(t, w)
	}
	for _, in := range w.told {
		if in.Type == kind {
			raw, err := events.Event{ID: in.EventID, Type: in.Type, Time: in.At, Sequence: in.Sequence, Data: in.Data}.Body()
			require.NoError(t, err)
			var pretty bytes.Buffer
			require.NoError(t, json.Indent(&pretty, raw, "", "  "))
			return pretty.String()
		}
	}
	require.Fail(t, "not told", kind)
	return ""
}

// Every proof that the page names is a test.
func TestTheProofsOfTheEvents(t *testing.T) {
	raw, err := os.ReadFile(eventsDoc)
	require.NoError(t, err)
	var code strings.Builder
	for _, dir := range []string{".", "../events", "../e2e"} {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			code.Write(text)
		}
	}
	proofs := regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(raw), -1)
	require.NotEmpty(t, proofs)
	for _, p := range proofs {
		require.Contains(t, code.String(), "\nfunc "+p[1]+"(t *testing.T)")
	}
}

var exampleBlock = regexp.MustCompile("(?s)\n### `([a-z.]+)`\n.*?```json\n(.*?)\n```\n")

// Every type has its example, which is what the code sends.
func TestTheExamplesOfTheEvents(t *testing.T) {
	raw, err := os.ReadFile(eventsDoc)
	require.NoError(t, err)
	doc := string(raw)
	found := map[string]string{}
	for _, m := range exampleBlock.FindAllStringSubmatch(doc, -1) {
		found[m[1]] = m[2]
	}
	for kind, story := range exampleOf {
		want := example(t, kind, story)
		require.NotEmpty(t, found[kind], "no example of %s", kind)
		if *rewrite {
			doc = strings.Replace(doc, "### `"+kind+"`\n", "### `"+kind+"`\n\x00", 1)
			head, rest, _ := strings.Cut(doc, "\x00")
			doc = head + strings.Replace(rest, "```json\n"+found[kind]+"\n```", "```json\n"+want+"\n```", 1)
			continue
		}
		require.Equal(t, want, found[kind], "docs/events.md is behind the code: go test ./workflows -run TestTheExamples -update-events")
	}
	require.Len(t, found, len(exampleOf), "an example of what is not told")
	if *rewrite {
		require.NoError(t, os.WriteFile(eventsDoc, []byte(doc), 0o644))
	}
}
