package sms

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConsolePrintsAndFilesWholeLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "outbox.jsonl")
	var out bytes.Buffer
	c, err := NewConsole(&out, path)
	require.NoError(t, err)
	require.FileExists(t, path, "whoever waits for texts can open it before the first")

	var sends sync.WaitGroup
	for range 50 {
		sends.Go(func() {
			receipt, err := c.Send(t.Context(), Text{To: "+12025550101", Body: "hello\n\"you\"", Cause: CauseOffer, EntryID: "e", HoldID: "h"})
			if err != nil || !receipt.Sent {
				t.Errorf("receipt %+v, error %v", receipt, err)
			}
		})
	}
	sends.Wait()

	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	ids := map[string]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var line map[string]string
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		require.Equal(t, "+12025550101", line["to"])
		require.Equal(t, "hello\n\"you\"", line["body"])
		require.Equal(t, "offer", line["cause"])
		require.Equal(t, "e", line["entry_id"])
		require.Equal(t, "h", line["hold_id"])
		require.NotEmpty(t, line["at"])
		ids[line["sid"]] = true
	}
	require.Len(t, ids, 50)
	require.Equal(t, 50, bytes.Count(out.Bytes(), []byte("text to +12025550101 (offer): hello")))
}

func TestConsoleThatCannotWriteSaysLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outbox.jsonl")
	c, err := NewConsole(&bytes.Buffer{}, path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o755))
	_, err = c.Send(t.Context(), Text{To: "+12025550101"})
	var refusal *Error
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, Later, refusal.Class)

	_, err = NewConsole(&bytes.Buffer{}, filepath.Join(path, "\x00"))
	require.ErrorContains(t, err, "sms.outbox")
}
