// Package deploy holds what runs Holdfast elsewhere than on a developer's
// machine, and the tests that look at it.
package deploy
