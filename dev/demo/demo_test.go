package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/payment"
	"holdfast/payment/stripe"
	"holdfast/payment/webhook"
)

func TestWithoutADoorTheDemoSaysWhatToStart(t *testing.T) {
	door := httptest.NewServer(http.NotFoundHandler())
	door.Close()
	err := run(t.Context(), []string{"-url", door.URL}, io.Discard)
	require.ErrorContains(t, err, "start `make dev` first")
}

func TestAFailureNamesItsStep(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	door := httptest.NewServer(mux)
	defer door.Close()
	var out strings.Builder
	err := run(t.Context(), []string{"-url", door.URL, "-texts", t.TempDir() + "/none"}, &out)
	require.ErrorContains(t, err, `step "the shop opens the SKU without a unit"`)
	require.Contains(t, out.String(), "Four chairs, five people")
}

// Whatever payment.provider is, its references have this form.
func TestThePaymentsHaveTheFormOfEveryProvider(t *testing.T) {
	for _, provider := range []payment.Port{payment.None(), webhook.New(nil), &stripe.Adapter{}} {
		require.NoError(t, provider.CheckRef(paymentRef("Ada")), provider.Name())
	}
	require.NotEqual(t, paymentRef("Ada"), paymentRef("Ada"))
}
