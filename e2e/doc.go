// Package e2e holds the end-to-end stories: real Temporal, real Redis, the built
// binaries, everything through HTTP. It imports of the product only what a story is
// about, such as keys, to sign a link whose time is over, and the codec; wire names
// stand here as literals, so that a changed name breaks a story. `make test` builds
// the binaries and sets HOLDFAST_BIN, TEMPORAL_BIN and TEMPORAL_CLI_BIN;
// HOLDFAST_LONG=1 plays the large forms.
package e2e
