package connect

import "holdfast/config"

// Namespace is the Temporal namespace that Temporal connects to.
func Namespace(cfg *config.Config) (string, error) {
	opts, err := temporalOptions(cfg)
	return opts.Namespace, err
}
