package ground

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// date is a day, a month or a year's month; 0 is what is not said.
type date struct{ year, month, day int }

var months = []string{"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"}

const monthForm = `(Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\b\.?`

var (
	isoDate    = regexp.MustCompile(`\b(\d{4})-(\d{1,2})-(\d{1,2})\b`)
	dottedDate = regexp.MustCompile(`\b(\d{1,2})\.(\d{1,2})\.(\d{4})\b`)
	slashDate  = regexp.MustCompile(`\b(\d{1,2})/(\d{1,2})/(\d{4})\b`)
	dayFirst   = regexp.MustCompile(`\b(\d{1,2})(?:st|nd|rd|th)?\.?(?: of)? ` + monthForm + `(?:,? (\d{4})\b)?`)
	monthFirst = regexp.MustCompile(`\b` + monthForm + ` (\d{1,2})(?:st|nd|rd|th)?\b(?:,? (\d{4})\b)?`)
	monthYear  = regexp.MustCompile(`\b` + monthForm + `(?: of)? (\d{4})\b`)
	monthAlone = regexp.MustCompile(`\b` + monthForm)
	// "May" and "March" alone are months after these only.
	monthAfter = regexp.MustCompile(`(?i)(?:^|\b)(in|of|by|since|until|till|from|before|after|during|early|late|mid|next|last|every|each)[ -]$`)

	clock  = regexp.MustCompile(`(?i)\b(\d{1,2}):(\d{2})(?::\d{2})?(?:\s?([ap])\.?m\b\.?)?`)
	hourOf = regexp.MustCompile(`(?i)\b(\d{1,2})\s?([ap])\.?m\b\.?`)
)

// dates reads the dates of a normalised text, each once, with the readings that
// it may have. What is left of the text has none.
func dates(text string) (all [][]date, rest string) {
	add := func(readings []date) {
		if len(readings) > 0 && !slices.ContainsFunc(all, func(have []date) bool { return slices.Equal(have, readings) }) {
			all = append(all, readings)
		}
	}
	take := func(form *regexp.Regexp, read func(m []string) []date) {
		text = replaced(form, text, func(m []string) bool {
			readings := valid(read(m))
			add(readings)
			return len(readings) > 0
		})
	}
	take(isoDate, func(m []string) []date { return []date{{number(m[1]), number(m[2]), number(m[3])}} })
	take(dottedDate, func(m []string) []date { return []date{{number(m[3]), number(m[2]), number(m[1])}} })
	take(slashDate, func(m []string) []date {
		return []date{{number(m[3]), number(m[2]), number(m[1])}, {number(m[3]), number(m[1]), number(m[2])}}
	})
	take(dayFirst, func(m []string) []date { return []date{{number(m[3]), month(m[2]), number(m[1])}} })
	take(monthFirst, func(m []string) []date { return []date{{number(m[3]), month(m[1]), number(m[2])}} })
	take(monthYear, func(m []string) []date { return []date{{number(m[2]), month(m[1]), 0}} })
	for _, at := range monthAlone.FindAllStringSubmatchIndex(text, -1) {
		name := text[at[2]:at[3]]
		if name != "May" && name != "March" && name != "Mar" || monthAfter.MatchString(text[max(0, at[0]-len("during ")):at[0]]) {
			add([]date{{month: month(name)}})
		}
	}
	return all, text
}

// replaced blanks out what the form, which has digits, matches and take accepts.
func replaced(form *regexp.Regexp, text string, take func(m []string) bool) string {
	if !strings.ContainsAny(text, "0123456789") {
		return text
	}
	return form.ReplaceAllStringFunc(text, func(found string) string {
		if take(form.FindStringSubmatch(found)) {
			return " , "
		}
		return found
	})
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits) // "" is 0, not said
	return n
}

func month(name string) int {
	for i, m := range months {
		if strings.HasPrefix(m, strings.ToLower(name)[:3]) {
			return i + 1
		}
	}
	return 0
}

func valid(readings []date) (kept []date) {
	for _, d := range readings {
		if d.month >= 1 && d.month <= 12 && d.day <= 31 {
			kept = append(kept, d)
		}
	}
	return kept
}

// says reports that a source with d says the other date: all that it says, d
// says too. A year may stand elsewhere.
func (d date) says(other date, year func(int) bool) bool {
	return d.month == other.month && (other.day == 0 || d.day == other.day) &&
		(other.year == 0 || d.year == other.year || d.year == 0 && year(other.year))
}

// times reads times of the day in minutes since midnight. What is left of the
// text has none.
func times(text string) (all []int, rest string) {
	read := func(hour, minute int, half string) bool {
		switch {
		case hour > 24 || minute > 59 || half != "" && (hour > 12 || hour == 0):
			return false
		case strings.EqualFold(half, "p") && hour < 12:
			hour += 12
		case strings.EqualFold(half, "a") && hour == 12:
			hour = 0
		}
		all = append(all, hour*60+minute)
		return true
	}
	text = replaced(clock, text, func(m []string) bool { return read(number(m[1]), number(m[2]), m[3]) })
	text = replaced(hourOf, text, func(m []string) bool { return read(number(m[1]), 0, m[2]) })
	return all, text
}
