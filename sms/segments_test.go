package sms

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func times(s string, n int) string { return strings.Repeat(s, n) }

// vectors are counts by the tables of 3GPP TS 23.038: a septet a character of the
// basic table, two of the extension, 160 alone and 153 beside a header; UCS-2 with
// 70 and 67 units.
var vectors = []struct {
	name string
	body string
	want int
}{
	{"nothing", "", 0},
	{"one septet", "a", 1},
	{"159 septets", times("a", 159), 1},
	{"160 septets", times("a", 160), 1},
	{"161 septets", times("a", 161), 2},
	{"two full parts", times("a", 306), 2},
	{"three parts", times("a", 307), 3},
	{"three full parts", times("a", 459), 3},
	{"four parts", times("a", 460), 4},
	{"ten full parts", times("a", 1530), 10},

	// The basic table, row by row, each filling a segment to its end.
	{"basic row 0", times("@£$¥èéùì", 20), 1},
	{"basic row 0, one more", times("@£$¥èéùì", 20) + "@", 2},
	{"basic row 0, second half", times("òÇ\nØø\rÅå", 20), 1},
	{"basic row 1", times("Δ_ΦΓΛΩΠΨ", 20), 1},
	{"basic row 1, second half", times("ΣΘΞÆæßÉ", 22) + "ΣΘΞÆæß", 1},
	{"basic row 2", times(" !\"#¤%&'", 20), 1},
	{"basic row 2, second half", times("()*+,-./", 20), 1},
	{"basic row 3", times("01234567", 20), 1},
	{"basic row 3, second half", times("89:;<=>?", 20), 1},
	{"basic row 4", times("¡ABCDEFG", 20), 1},
	{"basic row 4, second half", times("HIJKLMNO", 20), 1},
	{"basic row 5", times("PQRSTUVW", 20), 1},
	{"basic row 5, second half", times("XYZÄÖÑÜ§", 20), 1},
	{"basic row 6", times("¿abcdefg", 20), 1},
	{"basic row 6, second half", times("hijklmno", 20), 1},
	{"basic row 7", times("pqrstuvw", 20), 1},
	{"basic row 7, second half", times("xyzäöñüà", 20), 1},
	{"every basic character", gsmBasic, 1},

	// The extension table: an escape and a septet each.
	{"form feed", times("\f", 80), 1},
	{"form feed, one more", times("\f", 81), 2},
	{"circumflex", times("^", 80), 1},
	{"circumflex, one more", times("^", 80) + "a", 2},
	{"braces", times("{}", 40), 1},
	{"braces, one more", times("{}", 40) + "{", 2},
	{"backslash", times(`\`, 80) + "a", 2},
	{"brackets", times("[]", 40) + "a", 2},
	{"tilde", times("~", 80) + "a", 2},
	{"bar", times("|", 80) + "a", 2},
	{"euro", times("€", 80), 1},
	{"euro, one more", times("€", 80) + "a", 2},
	{"an escape would end the first part", times("a", 152) + "€" + times("a", 8), 2},
	{"and pushes its character into the second", times("a", 152) + "€" + times("a", 151), 2},
	{"which is full one septet sooner", times("a", 152) + "€" + times("a", 152), 3},
	{"an escape that ends at the border", times("a", 151) + "€" + times("a", 153), 2},
	{"each part of escapes wastes a septet", times("€", 152), 2},
	{"so the next one is a third part", times("€", 153), 3},
	{"159 and an escape", times("a", 159) + "€", 2},
	{"158 and an escape", times("a", 158) + "€", 1},

	// UCS-2.
	{"one foreign character", "ж", 1},
	{"70 units", times("ж", 70), 1},
	{"71 units", times("ж", 71), 2},
	{"134 units", times("ж", 134), 2},
	{"135 units", times("ж", 135), 3},
	{"201 units", times("ж", 201), 3},
	{"202 units", times("ж", 202), 4},
	{"one foreign character makes all of it UCS-2", times("a", 69) + "ж", 1},
	{"at 71 too", times("a", 70) + "ж", 2},
	{"the small cedilla is not in the table", times("ç", 71), 2},
	{"nor is the grave accent", times("`", 71), 2},
	{"nor the tabulator", times("\t", 71), 2},
	{"an escaped character is one unit there", times("€", 69) + "ж", 1},
	{"Greek beyond the ten letters", times("Α", 71), 2},
	{"Chinese", times("椅", 67*2), 2},
	{"a surrogate pair is two units", times("🪑", 35), 1},
	{"36 pairs", times("🪑", 36), 2},
	{"a pair is not split", times("ж", 66) + "🪑" + times("ж", 66), 3},
	{"a pair that ends at the border", times("ж", 65) + "🪑" + times("ж", 67), 2},
	{"33 pairs a part", times("🪑", 66), 2},
	{"and no more", times("🪑", 67), 3},
	{"an accent of its own is a unit", times("e\u0301", 35), 1},
	{"and stays with its letter", times("ж", 66) + "e\u0301" + times("ж", 66), 3},
	{"a family is eleven units", times("👩‍👩‍👧‍👦", 6), 1},
	{"of which six fit a part", times("👩‍👩‍👧‍👦", 12), 2},
	{"and no more", times("👩‍👩‍👧‍👦", 13), 3},
	{"a flag is four units", times("🇩🇪", 17), 1},
	{"sixteen flags a part", times("🇩🇪", 33), 3},
	{"a line break may be split", times("ж", 66) + "\r\n" + times("ж", 66), 2},
	{"a character with more accents than a segment holds is torn", "e" + times("\u0301", 133), 2},
	{"and counted", "e" + times("\u0301", 134), 3},
}

func TestSegments(t *testing.T) {
	require.GreaterOrEqual(t, len(vectors), 50)
	for _, c := range vectors {
		require.Equal(t, c.want, Segments(c.body), c.name)
	}
}

// The tables are whole: 127 characters beside the escape, and ten after it.
func TestTheTablesAreWhole(t *testing.T) {
	require.Len(t, []rune(gsmBasic), 127)
	require.Len(t, []rune(gsmExtended), 10)
	seen := map[rune]bool{}
	for _, r := range gsmBasic + gsmExtended {
		require.False(t, seen[r], "%q stands there twice", r)
		seen[r] = true
	}
}

// Adding to a text never makes it cheaper, and no segment carries more than it can.
func TestSegmentsGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.StringN(0, 300, -1).Draw(t, "body")
		more := body + rapid.StringN(0, 50, -1).Draw(t, "more")
		if Segments(more) < Segments(body) {
			t.Fatalf("%d segments, then %d", Segments(body), Segments(more))
		}
		if n := len([]rune(body)); Segments(body)*gsmSingle < n {
			t.Fatalf("%d characters in %d segments", n, Segments(body))
		}
	})
}

func TestFold(t *testing.T) {
	for from, to := range map[string]string{
		"“Ada’s” chair – new…":          `"Ada's" chair - new...`,
		"a\u00a0b\t\n c\u200b":          "a b c",
		"Stół Łódź, Şişli, Čapek":       "Stol Lodz, Sisli, Capek",
		"Größe ÄÖÜäöüß éèàùìò Ñ Å 5 €":  "Größe ÄÖÜäöüß éèàùìò Ñ Å 5 €",
		"Καρέκλα":                       "Καρέκλα",
		"Chair\x00\x07 2":               "Chair 2",
		"椅子":                            "椅子",
		"Brand™ 2×4":                    "BrandTM 2x4",
		"Chaise à bascule, façon Périé": "Chaise à bascule, facon Périé",
	} {
		require.Equal(t, to, Fold(from))
	}
	require.Equal(t, 1, Segments(Fold("Ada’s chair – “new”…")), "folding keeps a text in GSM-7")
}
