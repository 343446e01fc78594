package ground

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Chinese is written without spaces. Of a run of characters only those parts are
// taken apart that are compared: numerals with what they count, and negators.

var hanDigits = map[rune]float64{'〇': 0, '零': 0, '一': 1, '二': 2, '两': 2, '兩': 2, '三': 3, '四': 4, '五': 5, '六': 6, '七': 7, '八': 8, '九': 9}

var hanScales = map[rune]float64{'十': 10, '百': 100, '千': 1000, '万': 1e4, '萬': 1e4, '亿': 1e8, '億': 1e8}

// hanUnits are the names of units in Chinese, longest first.
var hanUnits = hanNames(units)

func hanNames(all map[string]string) (names []string) {
	for name := range all {
		if r, _ := utf8.DecodeRuneInString(name); ideographic(r) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return names
}

// counters stand between a number and what it counts.
const counters = "个個名人次份项項条條台件位级級页頁倍期届"

// hanPercent goes before its number.
const hanPercent = "百分之"

// hanNegators turn around what follows, but for the words in hanPositives.
const hanNegators = "不没沒无無未非勿"

var hanPositives = strings.Fields("不得超过 不得超過 不超过 不超過 不少于 不少於 不低于 不低於 不高于 不多于 不晚于 不迟于 不早于 不仅 不僅 不但 不同 不断 不斷 不管 不久 无论 無論 无线 無線 未来 未來 非常")

// han takes apart a run; afterNumber: a number in digits stands right before it.
func han(run string, afterNumber bool) (parts []string) {
	from := 0
	cut := func(at, n int, as string) {
		if at > from {
			parts = append(parts, run[from:at])
		}
		parts, from = append(parts, as), at+n
	}
	for at := 0; at < len(run); {
		_, n := utf8.DecodeRuneInString(run[at:])
		unit, positive := prefix(run[at:], hanUnits), prefix(run[at:], hanPositives)
		value, digits := hanNumber(run[at:])
		switch {
		case afterNumber && at == from && scales[run[at:at+n]] > 0: // 3万
			cut(at, n, run[at:at+n])
		case afterNumber && at == from && unit != "":
			n = len(unit)
			cut(at, n, unit)
			afterNumber = false
		case strings.HasPrefix(run[at:], hanPercent):
			if value, digits = hanNumber(run[at+len(hanPercent):]); digits > 0 {
				n = len(hanPercent) + digits
				cut(at, n, format(value))
				parts = append(parts, "%")
			}
		case digits > 0 && counted(run[at:], digits):
			n = digits
			cut(at, n, format(value))
			afterNumber = true
		case digits > 0:
			n = max(n, digits-len("百")) // its last character may begin a percentage
		case positive != "":
			n = len(positive)
		case strings.Contains(hanNegators, run[at:at+n]):
			cut(at, n, run[at:at+n])
		}
		at += n
	}
	if from < len(run) {
		parts = append(parts, run[from:])
	}
	return parts
}

func prefix(text string, of []string) string {
	for _, p := range of {
		if strings.HasPrefix(text, p) {
			return p
		}
	}
	return ""
}

// counted reports a numeral before a unit or a counter; "one of" is no number.
func counted(text string, digits int) bool {
	rest := text[digits:]
	counter, n := utf8.DecodeRuneInString(rest)
	return prefix(rest, hanUnits) != "" || n > 0 && strings.ContainsRune(counters, counter) && text[:digits] != "一"
}

// hanNumber reads the numeral that a text begins with, in so many bytes; 0: none.
// One of scales alone, as in "tens of thousands", is none.
func hanNumber(text string) (value float64, bytes int) {
	total, section, digit := 0.0, 0.0, 0.0
	for at, r := range text {
		d, isDigit := hanDigits[r]
		scale := hanScales[r]
		switch {
		case isDigit:
			digit = 10*digit + d
		case scale >= 1e4 && at == 0:
			return 0, 0
		case scale >= 1e4 && total >= scale: // 一亿五千万
			total, section, digit = total+(section+digit)*scale, 0, 0
		case scale >= 1e4:
			total, section, digit = (total+section+digit)*scale, 0, 0
		case scale > 0:
			section, digit = section+max(digit, 1)*scale, 0
		default:
			return total + section + digit, at
		}
	}
	return total + section + digit, len(text)
}
