package proc

import (
	"io"
	"os"
)

// unlinkedFile is a file without a name where there is no memfd.
func unlinkedFile(text []byte) (*os.File, error) {
	f, err := os.CreateTemp("", "kanlog-spec-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return filled(f, text)
}

func filled(f *os.File, text []byte) (*os.File, error) {
	_, err := f.Write(text)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
