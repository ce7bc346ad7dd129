package eventlog

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// notLocal are the file systems on which a mapping and a lock may mean nothing
// beyond this machine, by the number statfs gives. virtiofs calls itself FUSE.
var notLocal = map[uint32]string{
	0x6969:     "NFS",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x517b:     "SMB",
	0x65735546: "FUSE",
	0x01021997: "9P",
	0x5346414f: "AFS",
	0x6b414653: "kAFS",
	0x00c36400: "Ceph",
	0x73757245: "Coda",
	0x564c:     "NCP",
	0x0bd00bd0: "Lustre",
	0x7461636f: "OCFS2",
	0x01161970: "GFS2",
	0x47504653: "GPFS",
	0x19830326: "BeeGFS",
	0x786f4256: "vboxsf",
	0xaad7aaea: "PanFS",
}

// remoteFS returns the name of the file system of dir if it is not a local one.
// A variable, since a test cannot mount each of them.
var remoteFS = func(dir string) (string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", fmt.Errorf("statfs %s: %w", dir, err)
	}
	return notLocal[uint32(st.Type)], nil
}
