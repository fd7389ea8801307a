package cli

import (
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"io"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
)

//go:embed init.env
var initText string

func (a *app) init() *cobra.Command {
	return &cobra.Command{
		Use: "init", Short: "Print the settings of a new Compose stack, with secrets of its own", Args: cobra.NoArgs,
		Long: `Print the settings of a new Compose stack, with secrets of its own.

  (umask 077; set -C; holdfast init > .env)

makes the file .env that docker-compose.yml reads. "set -C" keeps the shell from
emptying one that is there: its secrets could not be made again.`,
		RunE: func(*cobra.Command, []string) error {
			text, err := initFile(func(n int) []byte {
				raw := make([]byte, n)
				rand.Read(raw) // never fails since Go 1.24
				return raw
			})
			if err != nil {
				return err
			}
			_, err = io.WriteString(a.std.Out, text)
			return err
		},
	}
}

// initFile fills init.env. random makes n bytes; the file has them in letters,
// digits, _ and -, or in plain base64 where the setting wants that.
func initFile(random func(n int) []byte) (string, error) {
	t, err := template.New("init.env").Funcs(template.FuncMap{
		"random": func(n int) string { return base64.RawURLEncoding.EncodeToString(random(n)) },
		"base64": func(n int) string { return base64.StdEncoding.EncodeToString(random(n)) },
	}).Parse(initText)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if err := t.Execute(&b, nil); err != nil {
		return "", err
	}
	return b.String(), nil
}
