package projection

import (
	"strconv"
	"strings"
)

// A command or a line of the settings that we tell somebody is pasted as it is, and
// holds names that others gave: each name is quoted for where it stands.

const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// ShellWord quotes a word for a shell where that is needed.
func ShellWord(s string) string {
	if s != "" && strings.Trim(s, alphanumeric+"_%+=:,./@-") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// TOMLKey quotes a key of the settings where that is needed: a bare one has ASCII
// letters, digits, _ and - alone.
func TOMLKey(s string) string {
	if s != "" && strings.Trim(s, alphanumeric+"_-") == "" {
		return s
	}
	return strconv.Quote(s)
}
