package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"holdfast/config"
)

func (a *app) config() *cobra.Command {
	var asJSON bool
	show := &cobra.Command{
		Use: "config", Short: "Show the configuration in effect, without its secrets", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := config.Load(a.file, a.set)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(a.std.Out, cfg.Masked())
			}
			w := tabwriter.NewWriter(a.std.Out, 0, 0, 2, ' ', 0)
			for _, s := range cfg.Masked() {
				fmt.Fprintf(w, "%s\t%s\t%s\n", s.Key, s.Value, s.Source)
			}
			return w.Flush()
		},
	}
	show.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	show.AddCommand(&cobra.Command{
		Use: "check", Short: "Say whether the configuration is right, and everything that is not", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if _, err := config.Load(a.file, a.set); err != nil {
				return err
			}
			_, err := fmt.Fprintln(a.std.Out, "the configuration is right")
			return err
		},
	})
	return show
}

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version and those of the libraries that matter on the wire", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.std.Out, "holdfast %s\n%s", ownVersion(), libraries())
			return err
		},
	}
}

// ownVersion is the module's version, or the commit of a build from a checkout.
func ownVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version, revision, dirty := info.Main.Version, "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			revision = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	if (version == "" || version == "(devel)") && revision != "" {
		return revision + dirty
	}
	return version
}

func libraries() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	text := info.GoVersion + "\n"
	for _, m := range info.Deps {
		switch m.Path {
		case "go.temporal.io/sdk", "go.temporal.io/api", "github.com/redis/go-redis/v9":
			text += m.Path + " " + m.Version + "\n"
		}
	}
	return text
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
