"""Evidence that tests give: tags, notices, sidecars and metadata, and the licenses of a source that has it."""

from pipeline.stages.normalize.license.decide import PackageFacts, SourceLicenses
from pipeline.stages.normalize.license.policy import parse_policy, policy_bytes
from pipeline.stages.normalize.params import LicenseParams

TAG = "SPDX-License-" + "Identifier:"
POLICY = parse_policy(policy_bytes())
METADATA = b"Metadata-Version: 2.4\nName: x\nLicense-Expression: MIT\n\nLicense-Expression: GPL-2.0-only\n"
GPL_TEXT = b"      GNU GENERAL PUBLIC LICENSE\n       Version 2, June 1991\n"
LGPL_NOTICE = "// the GNU Lesser General Public License\nint a;\n"
GPL_NOTICE = "// under the GNU General Public License\nint a;\n"
REUSE = '[[annotations]]\npath = "**"\nprecedence = "{}"\nSPDX-License-Identifier = "{}"\n'


def licenses_of(
    evidence: dict[str, bytes], declared: str = "", inherits: bool = True, params: LicenseParams | None = None
) -> SourceLicenses:
    return SourceLicenses(evidence, PackageFacts(declared, inherits), POLICY, params or LicenseParams())


def tagged(expression: str) -> str:
    return f"// {TAG} {expression}\nint a;\n"


def sidecar(expression: str) -> bytes:
    return f"{TAG} {expression}\n".encode()
