"""Archives that readers must refuse, or that two readers read differently: made of bytes alone."""

import io
import lzma
import struct
import tarfile
import zipfile
import zlib

SOUND = {"d/a.c": b"int a;\n"}


def tar(files: dict[str, bytes], *entries: tarfile.TarInfo, form: int = tarfile.GNU_FORMAT) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=form, encoding="utf-8", errors="surrogateescape") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for entry in entries:
            archive.addfile(entry)
    return target.getvalue()


def entry(name: str, kind: bytes, target: str = "", **more: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    for field, value in more.items():
        setattr(info, field, value)
    return info


def zipped(files: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target.getvalue()


def zip_of_member(name: str, content: bytes, **fields: object) -> bytes:
    """A zip of a sound member and of one whose directory entry has these fields."""
    target = io.BytesIO(zipped(SOUND))
    with zipfile.ZipFile(target, "a") as archive:
        info = zipfile.ZipInfo(name)
        for field, value in fields.items():
            setattr(info, field, value)
        archive.writestr(info, content)
    return target.getvalue()


def zip_of_two_names() -> bytes:
    """A member to which only the header before it gives a second name."""
    extra = b"up" + struct.pack("<HBI", 10, 1, zlib.crc32(b"d/b.c")) + b"d/z.c"
    first, between, last = zip_of_member("d/b.c", b"int b;\n", extra=extra).partition(extra)
    return first + between + last.replace(extra, b"uq" + extra[2:])


def zip_of_wrong_checksum() -> bytes:
    """A member in another language, whose bytes have another checksum than is declared."""
    content = zip_of_member("d/b.txt", b"text")
    return content.replace(struct.pack("<I", zlib.crc32(b"text")), bytes(4))


def listed_zip(names: list[bytes], content: bytes) -> bytes:
    """A zip that lists one and the same member many times, under names of one length."""
    packed = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = packed.compress(content) + packed.flush()
    facts = struct.pack("<HHHHHIII", 20, 0, 8, 0, 33, zlib.crc32(content), len(data), len(content))
    local = b"PK\x03\x04" + facts + struct.pack("<HH", 1, 0) + b"m" + data
    facts += struct.pack("<HHHHHII", len(names[0]), 0, 0, 0, 0, 0, 0)
    listing = b"".join(b"PK\x01\x02\x14\0" + facts + name for name in names)
    end = struct.pack("<HHHHIIH", 0, 0, 0xFFFF, 0xFFFF, len(listing), len(local), 0)
    return local + listing + b"PK\x05\x06" + end


def commented(archive: bytes, comment: bytes = b"said by the way") -> bytes:
    target = io.BytesIO(archive)
    with zipfile.ZipFile(target, "a") as opened:
        opened.comment = comment
    return target.getvalue()


def sparse() -> bytes:
    """A member that is one hole of 8 GiB, in 512 bytes."""
    header = bytearray(entry("d/x.c", tarfile.GNUTYPE_SPARSE).tobuf(tarfile.GNU_FORMAT))
    header[483:495] = b"%011o\0" % (8 * 1024**3)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + b"\0" * 1024


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]


def zip_end(archive: bytes, at: int, form: str, value: int) -> bytes:
    """Change a field of the end record of a zip without a comment."""
    changed = bytearray(archive)
    struct.pack_into(form, changed, len(changed) - 22 + at, value)
    return bytes(changed)


def two_readings_of_a_zip() -> bytes:
    """A zip whose member has other bytes for a reader of its directory than for one that reads member after member."""
    shown, hidden = zipped({"d/a.c": b"int shown;\n"}), zipped({"d/a.c": b"int hidden;\n"})
    directory = shown.index(b"PK\x01\x02")
    member, listing = shown[:directory], bytearray(shown[directory:])
    front = hidden[: hidden.index(b"PK\x01\x02")]
    struct.pack_into("<I", listing, 42, len(front))
    struct.pack_into("<I", listing, len(listing) - 6, len(front) + len(member))
    return front + member + bytes(listing)


def renumbered(archive: bytes, size: bytes) -> bytes:
    """The first member of a tar with another size field."""
    header = bytearray(archive[:512])
    header[124:136] = size
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + archive[512:]


def with_window(archive: bytes, dictionary_bytes: int) -> bytes:
    return lzma.compress(archive, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": dictionary_bytes}])


def declare_window(packed: bytes) -> bytes:
    """The same xz stream, whose header asks for a dictionary of 4 GiB."""
    content = bytearray(packed)
    size = (content[12] + 1) * 4
    block = content[12 : 12 + size]
    place = block.index(0x21) + 2
    content[12 + place] = 40
    content[12 + size - 4 : 12 + size] = struct.pack("<I", zlib.crc32(content[12 : 12 + size - 4]))
    return bytes(content)


def lying_zip() -> bytes:
    """A member that is declared longer than it is."""
    content = bytearray(zipped(SOUND))
    start = content.index(b"PK\x01\x02")
    content[start + 24 : start + 28] = struct.pack("<I", 5000)
    return bytes(content)
