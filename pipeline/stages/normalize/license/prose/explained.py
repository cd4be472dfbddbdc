"""Explained sentences: what the usual notices add to a license that they name, and references to the project's license file.

They grant, limit and forbid nothing by themselves: a stated or inherited license says it. Disclaimers of warranty need no
entry, for they hold no term of a license.
"""

from functools import cache
from typing import Any

import re2

from pipeline.stages.normalize.license.prose.names import TOKEN
from pipeline.stages.normalize.license.prose.prose_expressions import compile_prose

_FILE_NAME = (
    r"(?:un)?(?:licen[sc]es?|copying|copyrights?|notice|legal|licensing)(?: and copyright| or copying"
    r"| copyright)?"
)
_ON_THE_WAY = (
    "the|a|an|accompanying|included|enclosed|attached|file|files|top|toplevel|level|root|main"
    "|project|projects|source|sources|directory|folder"
    "|distribution|this|its|our|of|in|terms|terms|conditions|and|license|licence|copyright|provided"
    "|named|called|found|that|can|be|located|at|s"
    f"|which|is|are|open|apply|detailed|described|associated|code|for|full|see|under|to|according"
    f"|package|respective|corresponding|{TOKEN}|by|style|included|with"
)
_TAIL = (
    "txt|md|rst|html|file|files|lesser|for|details?|more|information|info|full|the|text|terms"
    "|and|conditions|or|copying|notice|authors|in|root"
    "|top|of|directory|level|folder|source|tree|project|this|distribution|repository|package|that"
    "|accompan\\w+|came|comes|with|included|software"
    "|licensing|permissions?|rights|limitations|restrictions|copyright|licen[sc]es?|should|have"
    "|been|was|were|distributed|at|http|www|github|com"
    f"|blob|master|main|on|found|be|can|is|copy|1|0|2|a|usage|reuse|use|redistribution|contributors"
    f"|disclaimer|warranty|warranties|{TOKEN}|you|received|obtain|it|governing|code|which|provided"
    f"|please|also|legal|org|net|contact|see"
)
_LEAD = (
    "for|the|full|complete|more|further|additional|third|party|copyright|license|licence|licensing|legal|information"
    "|details?|terms?|conditions|text|a|copy|of|and|on"
    "|about|this|file|software|please|also|use|source|code|is|are|can|be|project|part|distributed"
    "|licensed|released|provided|available|governed|by|subject"
    "|to|under|may|used|redistributed|only|modified|that|as|program|library|all|it|usage|redistribution"
    "|distribution|modification"
)
_PATTERNS = (
    # What follows the name of a license in its standard notice.
    r"(?:the license )?(?:and )?you (?:may|can|must|are) not use this (?:file|work|software|code|source code|library|package"
    r"|product|module|program|project)(?: except)? (?:except )?in compliance with the (?:licenses?|n\d+)",
    rf"(?:and )?(?:you|a copy of the licen[sc]e)(?: \w+){{0,3}} (?:may|can) (?:also )?(?:obtain"
    rf"|get|find|be obtained|be found|view)(?: (?:a|an|the|copy|copies|of|{TOKEN}|licen[sc]es?|full"
    rf"|text))* (?:at|from|in|on|under|here)(?: (?:http|www|{TOKEN}|\w+ (?:org|com|net|gov|edu)"
    rf"|licen[sc]es?|license 2 0|html|txt|php|the|following|location|url|file|or|and|to|by|\w+ at)){{0,12}}",
    r"unless required by applicable law or agreed to in writing(?: \w+){0,30} (?:either )?(?:express"
    r" or implied|of any kind)",
    rf"(?:software )?(?:distributed|provided) under the (?:licen[sc]es?|{TOKEN}) (?:is|are) (?:distributed"
    rf"|provided) on an as is(?: \w+){{0,14}}? (?:express or implied|of any kind)"
    r"(?: either express or implied)?"
    r"(?: and \w+ hereby disclaims all such warranties(?: including(?: \w+){1,14} non infringement)?)?",
    rf"licensed to (?:the )?(?:psf|python software foundation|{TOKEN}) under an? contributor agreement",
    r"(?:please )?obtain a copy of the licen[sc]e at(?: \w+){1,8} and read it before using this (?:file|software)",
    rf"(?:please )?(?:see|refer to) the (?:applicable )?(?:licen[sc]es?|{TOKEN})(?: (?:version|v)"
    rf" [\d ]+)? for (?:the |more |further )*(?:specific language|details?|copying|information)"
    rf"(?: (?:governing|controlling)(?: \w+ and \w+| \w+)(?: and limitations)?)?(?: under the (?:licen[sc]es?"
    rf"|{TOKEN}))?",
    r"for the specific language governing (?:\w+ and \w+|permissions|rights)(?: and limitations)?"
    r"(?: under the licen[sc]es?)?",
    rf"(?:(?:if a|a|unless a) )?copy of the (?:{TOKEN}|mpl|licen[sc]es?) was not distributed with"
    rf" this (?:file|program|library|package)(?: you can obtain one at(?: \w+){{0,6}})?",
    rf"you should (?:have )?(?:also )?(?:receive|received|find|have|get)(?: (?:a|the|copy|copies"
    rf"|of|{TOKEN}|licen[sc]es?|text|and|both|along))*(?: (?:with|in|from) (?:this|the|\w+) (?:\w+"
    rf" ){{0,6}})?(?:if not(?: \w+){{0,30}}?(?:{TOKEN}|licen[sc]es?|usa|boston|foundation)(?: (?:org"
    rf"|ma|inc|\d+|usa|fifth|floor|franklin|street|http|www|gnu|org|licen[sc]es?|temple|place|suite"
    rf"|cambridge|mass|ave))*)?",
    rf"this (?:\w+ ){{1,4}}is distributed in the hope that(?: \w+){{0,30}} (?:particular purpose"
    rf"|merchantability|warranty)(?: see(?: the)? (?:{TOKEN}|licen[sc]e\w*)(?: for)?(?: more)?(?:"
    rf" details)?)?",
    rf"(?:shown at |listed at )?(?:{TOKEN} )?you may choose either licen[sc]e(?: if you elect to"
    rf"(?: \w+){{0,30}} warranty)?",
    r"if you elect to accept the software",
    r"(?:this )?files?(?: in (?:the|this) (?:project|repository))? may not be copied modified or distributed"
    r" except according to those terms",
    r"under (?:the )?(?:terms of )?contract(?: \w+){1,16} (?:government|rights)(?: \w+){0,6} (?:software|work|rights)",
    r"the us?(?: s)? government retains(?: \w+){0,3} rights(?: in this (?:software|work))?",
    r"(?:to the extent that dedication(?: to the public domain)? )?(?:is not available )?everyone"
    r" is granted a worldwide(?: \w+){0,40} no rights are reserved",
    r"no rights are reserved",
    r"no rights reserved",
    r"(?:you (?:can|may|are free to) )?(?:do|use|copy) (?:whatever|what|anything|it however|as) you (?:want|like|wish|please)"
    r"(?: with| to do with)? (?:this|the|it)(?: (?:file|code|software|source|program))?$",
    r"feel free to use (?:this|the) (?:file|code|software|source|program) (?:in|for) any (?:project|purpose|way)s?"
    r"(?: you (?:want|like))?(?: commercial or (?:not|non commercial|otherwise))?$",
    r"(?:distributed|licensed|released|available|provided) under the licen[sc]e (?:in|found in|contained in|given in) (?:the )?"
    r"(?:file )?(?:licen[sc]e|copying)(?: (?:txt|md|file))?(?: (?:at|in) the (?:top|root)(?: level)?(?: of)?(?: the| this)?"
    r"(?: source)?(?: tree| project| repository| directory| distribution)?)?",
    r"(?:see|at|as specified in|available (?:at|from|in|here)|available|found at|refer to|is)?"
    r" ?http (?:www )?(?:github|gitlab|raw githubusercontent|bitbucket|raw github)(?: \w+){1,9}"
    r" (?:licen[sc]es?|copying)(?: (?:txt|md|rst|html))?",
    r"under the terms of contract(?: (?:no|number|de|with|\w*\d\w*))*",
    r"(?:see|refer to|in)(?: the)? readme(?: txt| md)? for(?: \w+)? licen[sc]e",
    r"see(?: the)? (?:readme|licen[sc]e|copying|copyright)(?: (?:txt|md|rst|file)){0,2} for"
    r" (?:information|details|terms|conditions) (?:on|of|about|regarding)"
    r" (?:(?:usage|use|copying|modification|and|or) ){0,4}(?:re)?distribution",
    r"there are (?:(?:minimal|few|almost|virtually|if|or) ){0,4}no restrictions on"
    r"(?: (?:the|its|redistribution|distribution|modification|copying|usage|use|and|or|of|this|software|code|library|work))+",
    r"see \w+ licen[sc]e (?:txt|md|file)",
    r"licen[sc]e (?:at|in) licenses(?: \w+){1,3} licen[sc]e",
    r"about copyright and rights to use",
    r"all of the code used other than openssl",
    r"obey the \w+ in all respects",
    r"(?:the )?(?:above )?copyright notice and this (?:permission )?notice (?:shall|must) be (?:included|preserved)",
    r"licen[sc]ed to the apache software foundation(?: asf)?(?: \w+){0,20}(?:notice file distributed"
    r" with this work)?(?: \w+){0,6}(?: information)?(?: regarding copyright ownership)?",
    r"see the notice file(?: \w+){0,12}",
    r"one or more contributor license agreements",
    r"contributor license agreements?",
    r"licen[sc]ed to (?:the )?(?:\w+ ){1,4}under one or more agreements",
    r"the (?:\w+ ){1,4}licen[sc]es this (?:file|project|code|work) to you",
    r"please read the warning disclaimer and patents sections in the readme(?: file)?",
    r"this program is released under the terms of the license contained in the file licen[sc]e",
    r"except as contained in this notice no name be used in advertising(?: (?:of|from)(?: \w+){1,3})?",
    r"all rights(?: are)? reserved(?: worldwide)?",
    r"some rights reserved",
    r"(?:this )?(?:\w+ ){0,4}is free software(?: it comes without any warranty to the extent permitted by applicable law)?(?: and)?"
    r" you (?:can|may)(?: redistribute it)?",
    # What is before the texts of a choice.
    r"(?:this )?(?:\w+ ){0,2}(?:is )?(?:dual |triple )?(?:available|licensed|released|distributed|provided|offered|licensing)"
    r"(?: under)?(?: terms of| one of| either of| both| the| these| as a choice of){0,3}"
    r" (?:2|two|3|three|multiple|several|following|below)"
    r"(?: \w+)? licen[sc]es(?: \w+ your (?:option|choice))?",
    r"(?:is |be )?deemed null and void(?: \w+){0,50} modification are permitted",
    r"you may select at your option one of the above listed licen[sc]es",
    r"(?:you (?:may|can) )?(?:choose|pick|select|take) (?:whichever|one|either)(?: of (?:them|the two)| you (?:prefer|like|want))?",
    r"(?:many |special )?thanks (?:go )?to(?: \w+){1,8} for (?:the |his |her |their )?permission to (?:use|include|adapt)"
    r"(?: \w+){0,8}",
    r"by downloading copying installing or using the software you agree to this license if you do not agree to this license do not"
    r" download install copy or use the software(?: (?:the )?(?:\w+ ){0,2}license agreement(?: for(?: \w+){1,5} library)?)?",
    r"approved for public release distribution (?:is )?unlimited",
    r"\w+ is pleased to support the open source community by making(?: \w+){1,5} available",
    r"see your chosen licen[sc]e for details",
    r"licen[sc]e copyright",
    r"(?:which )?(?:is |are |was |were )?(?:released|licensed|distributed|available|provided|covered|subject)(?: \w+)? (?:under|to)"
    r"(?: the)?(?: terms of)?(?: the)? following(?: \w+)? licen[sc]es?(?: terms| agreement)?",
    r"(?:arising|resulting|caused)(?: \w+){0,6} (?:out of|from|by)(?: or in connection with)?(?: the)? use"
    r" (?:or performance )?(?:or other dealings )?(?:of|in) (?:this|the) (?:software|file|code|program|library|work|product)",
    r"an additional intellectual property rights grant can be found in the file patents",
    r"no licen[sc]e is granted by implication or otherwise under any patent(?: or patent rights| rights?)?"
    r"(?: of \w+(?: \w+){0,2})?",
    r"infringements? of patents or other rights of third parties (?:which|that) may result from (?:its|their|the) use",
    r"this copyrighted material is made available to anyone wishing to use modify(?: copy or redistribute it)?",
    r"has executed a licen[sc]e with(?: \w+){1,3} to permit distribution of this code(?: and derivative works)?",
    r"(?:\w+ ){1,9}(?:is|are) specifically granted permission to redistribute this source code",
    r"except as contained in this notice the names? of (?:\w+ ){1,12}shall not be used in advertising or otherwise to promote the"
    r" sale use or other dealings in (?:this|the|these) (?:\w+ ){1,4}without prior written"
    r" authorization(?: (?:of|from)(?: \w+){1,4})?",
    rf"(?:the )?(?:text of the {TOKEN} |that )is included (?:with|in) this (?:library|software|package|program|distribution)"
    r"(?: in the file(?: \w+){1,4}? (?:txt|md))?",
    rf"(?:the )?(?:terms|texts?|copies) of (?:these|the|both|all) licen[sc]es (?:can|may) be found (?:at|in|here)(?: {TOKEN}"
    r"| http(?: \w+){1,4}| licen[sc]e)*",
    r"(?:where that )?dedication is not recognized you are granted a perpetual irrevo[ck]able licen[sc]e to copy"
    r"(?: \w+){0,3} modify(?: \w+){0,3} this file as you see fit",
    r"(?:\w+ ){0,3}copyrighted(?: \d{4})+",
    r"free software foundation(?: inc)?",
    r"(?:primarily|mainly|mostly|originally) for (?:educational|academic|research|teaching|testing) purposes",
    r"see section (?:ref )?licen[sc]e",
    r"for internal use (?:by|in|within|inside|of) the (?:\w+ )?(?:scheduler|allocator|compiler|kernel|library|module|driver|runtime"
    r"|parser|engine|framework|implementation|api|class|functions?)",
    r"you may use this program or code or tables extracted from it as desired without restriction",
    r"the encryption decryption parts of this source code(?: \w+){0,40} violation of us law",
    r"warranties express or implied are hereby disclaimed",
    r"redistribution and use in source and binary forms with or without modification are permitted this software is provided",
    r"hereby denoted as the implementers?",
    r"derived from material licensed to the university of california by american telephone(?: \w+){0,30}"
    r" permission of unix system laboratories(?: inc)?",
    rf"(?:which |that )?accompan(?:y|ies) this distribution(?: (?:and )?(?:the )?{TOKEN} (?:is|are) available at(?: {TOKEN})?)*"
    r"(?: and the eclipse distribution)?",
    r"non commercial fonts",
    r"(?:the )?(?:actual )?description of which is a trade secret",
    # What is told of others: an employer of a century ago, an author who is thanked.
    r"who (?:regarded|considered|treated)(?: \w+){1,10} as an? trade secret",
    r"(?:i|we) (?:would like to |want to |wish to )?thank(?: \w+){1,12} (?:who|for)(?: \w+){0,12} in an open source licen[sc]e",
    # What the authors of a work in the public domain say about another, and who paid for a work.
    r"equivalent code is available from rsa data security(?: \w+){0,30} legalese with every copy",
    r"(?:sponsored|funded|supported|developed)(?: \w+){0,30} under (?:agreement|contract|grant)s?"
    r"(?: numbers?| nos?)?(?: \w+\d\w*| \w{3} \d+| and)*",
    r"and (?:its|their) licensors",
    r"hereby licenses this (?:project|file|software) to you",
    r"(?:a )?copy of (?:the|this) licen[sc]e is (?:located|available)(?: at)?",
    r"this code is derived from software contributed to(?: \w+){1,6} by",
    r"licen[sc]e (?:\w+ )?(?:begin|end|header|notice|text|start)",
    r"(?:begin|end|start of|end of) licen[sc]e(?: block| text| header)?",
    r"spdx licen[sc]e identifier(?: (?:N\d+|or|and|with|\w+ exception|[\w]+)){0,12}",
    r"(?:this|the)(?: \w+){0,3} (?:header|notice|license|copyright notice)(?: \w+){0,3} (?:may"
    r"|must|should) not be (?:removed|altered)(?: \w+){0,6}",
    # What says that there is a choice: the notices and texts beside it say among which licenses.
    r"(?:this|the) (?:software|library|code|file|program|work|project|source)(?: \w+){0,3} is (?:also )?(?:dual |dually )?"
    r"(?:available|licensed|released|distributed|provided|offered)(?: under)?(?: \w+){0,3}"
    r" (?:2|two|3|three|multiple|dual)(?: \w+){0,4} licen[sc]es?",
    r"(?:please )?(?:choose|pick|use|select|take) (?:whichever|whatever|the one|one|either)"
    r"(?: \w+){0,2} (?:you (?:prefer|like|want)|suits)",
    rf"alternative [ab12](?: {TOKEN}(?: licen[sc]e)?)?",
    r"(?:(?:you|users|recipients|licensees|this means that) (?:(?:users|you|may|can|select|choose|use|pick|this|it|under|also) )*)?"
    r"(?:at (?:your|their) option )?(?:any |either )?(?:one|which|any|either) of (?:the|these)(?: above| following| listed| two)*"
    r" licen[sc]es(?: (?:they|you) take the code under)?",
    r"(?:when using or redistributing this (?:file|software|code) )?you may do so(?: under either licen[sc]e)?",
    r"(?:(?:this|the) (?:software|file|code|program) is )?(?:made )?available to you under a choice"
    r" of (?:one of )?(?:two|2|three|3) licen[sc]es(?: you may choose to be)?(?: licensed under(?: the)?(?: terms of)?(?: the)?)?",
    r"(?:licensed |distributed |released |available |provided )?(?:under |on )?(?:the )?same licen[sc]e"
    r"(?: terms)? as(?: the)?(?: rest of)?"
    r"(?: (?:this|the|main|whole|parent|enclosing))* (?:project|library|package|repository|program|software"
    r"|distribution|module)(?: itself)?",
    # What the United States say of the works of their employees, who have no copyright.
    r"(?:this|the) (?:software|code|file|program|work) (?:was|is|has been) (?:developed|created|produced|prepared|written|made)"
    r"(?: (?:at|in|by) (?:\w+ ){1,10})?(?: ?by)?(?: employees of)?(?: the| an?)?(?: u ?s| united states)? (?:federal )?government"
    r"(?: agency| employees?)? (?:in the course|as part) of (?:\w+ ){1,2}(?:official )?duties"
    r"(?: (?:and )?pursuant to title 17 (?:section 105|united states code section 105)(?: of the (?:united states|u ?s) code)?)?"
    r"(?: (?:this|the) (?:software|code|file|program|work)| it)*(?: is not subject to copyright(?: protection)?)?",
    r"at the (?:discretion|choice|option) of the (?:user|recipient|licensee)(?: of this \w+)? this software may be licensed",
    # A condition that does not hold where a license text is inherited.
    r"if no licen[sc]e file comes with this (?:software|file|component) it is provided as is",
    # References to a file: `see the file LICENSE`, `governed by the license in LICENSE.txt`, `under the terms in COPYING`.
    rf"(?:(?:{_LEAD}) )*(?:see|refer to|read|consult|check|cf|view|review|found in|contained in"
    rf"|described in|specified in|stated in|detailed in|given in|listed in"
    rf"|defined in|terms in|conditions in|included in|provided in|outlined in|set out in|set forth"
    rf" in|conditions of|terms of)"
    rf"(?: (?:{_ON_THE_WAY})){{0,14}} {_FILE_NAME}\b(?: (?:{_TAIL}))*",
    rf"(?:(?:{_LEAD}) )*(?:in|under|by|to|with|of) (?:(?:{_ON_THE_WAY}) )*?(?:{_FILE_NAME} (?:txt"
    rf"|md|rst|html|file|lesser|1 0 txt|in the root|in the top)|file {_FILE_NAME})\b(?: (?:{_TAIL}))*",
    rf"{_FILE_NAME}(?: (?:txt|md|file))?(?: (?:and|information|copyright|license|can be|terms|is"
    rf"|are|notice|details))* (?:found|see|available|located|in) (?:(?:{_ON_THE_WAY}) )*(?:{_FILE_NAME}"
    rf"|root|top)(?: (?:{_TAIL}))*",
    r"(?:for|the|see|this|full|original|license|licence|following|information|details|terms|please)?"
    r" ?licen[sc]e (?:information |details |terms |text |notice )?(?:is |are |please )?(?:see|refer"
    r" to|in|below|above|follows|as follows|given below|at the (?:end|bottom|top))(?: (?:the|of"
    r"|this|end|bottom|top))*(?: \w+ (?:h|hpp|c|cpp|cc|txt|md|rst))?",
)


_BESIDE_A_LICENSE = (
    r"(?:(?:which|that|and|it|they|code|adapted to work with \w+) )*(?:(?:is|are|was|were|be|been) )*"
    r"(?:released|licensed|distributed|provided|available|published|covered|subject)(?: \w+)? (?:under|to|by) (?:the )?"
    r"(?:terms of )?(?:the )?following (?:licen[sc]e|terms|conditions|notice|copyright)"
    r"(?: (?:and|terms|conditions|notice|licen[sc]e))*",
    r"under (?:the )?(?:terms of )?the following (?:licen[sc]e|terms|conditions|notice)(?: (?:and|terms|conditions|notice))*",
    r"(?:the )?(?:copyright and )?licen[sc]e (?:is|are) here taken to be",
    r"use is subject to (?:the )?licen[sc]e terms",
    rf"(?:section )?(?:software )?licen[sc]e agreement {TOKEN}",
    rf"you (?:can|may) use (?:this|the) (?:software|file|code|program) according to the terms and conditions of (?:the )?{TOKEN}",
    r"this software is provided on an as is basis without warranties of any kind either express or implied including but not"
    r" limited to non ?infringement merchantability or fit for a particular purpose",
    r"everyone is permitted to copy and distribute verbatim or modified copies of this licen[sc]e document and changing it is"
    r" allowed as long as the name is changed",
    r"to the extent that dedication to the public domain is not available everyone is granted a worldwide perpetual royalty free"
    r" non exclusive license to exercise all rights associated with the contents of this file for any purpose whatsoever"
    r" no rights are reserved",
    r"consult your local laws for possible restrictions on use distribution and import export",
    r"algorithm is available worldwide on a royalty free basis for commercial and non commercial uses?",
    r"(?:\w+ ){1,4}gave (?:the |us |his |her |their )*permission to use it (?:within|in) \w+",
    rf"(?:{TOKEN} )?terms and conditions for copying distribution and modification",
    r"licen[sc]e this (?:software|code|program|file|library|work)",
    r"(?:is )?(?:open source and )?free for (?:\w+ )?commercial(?: use)?",
    r"(?:you (?:can|may) )?do what(?:ever)? you (?:want|like|please)(?: with (?:it|this))?",
    r"you can redistribute it and or modify it without any restrictions(?: or if you choose(?: you can)?)?",
    rf"(?:was |is |were )?(?:originally|previously|formerly|first) (?:released|licensed|distributed|published|available) under"
    rf" (?:the )?(?:{TOKEN}|\w+ licen[sc]e)(?: (?:and|but)?(?: \w+){{0,2}} re ?(?:released|licensed) under"
    rf" (?:the )?(?:\w+ )?{TOKEN})?",
    rf"used as(?: \w+){{0,2}}(?: {TOKEN})? licensed with permission (?:from|of)(?: \w+){{1,2}}",
    r"(?:(?:software|file|source code|code) is )?not copyrighted(?: (?:this )?source code is offered for use| provided(?: to)?)?",
    r"you (?:may|can) obtain a copy of the licen[sc]e",
    r"is dual licensed(?: you can)?(?: use)?(?: either of these licenses)?",
    r"also available under alternate licen[sc]es contact",
)
"""Explanations beside a license that the comment states, as text or notice: that one is meant."""


def without_explained(words: str, is_stated: bool) -> str:
    """Return plain words with tokens of names, ` / ` in the place of what needs no explanation.

    `is_stated` says that the comment states a license: then an address of a license is that one's.
    """
    if is_stated:
        words = _address().sub(" / ", words)
    patterns, possible = _patterns(is_stated)
    for index in sorted(possible.Match(words, potential=True) or ()):
        words = patterns[index].sub(" / ", words)
    return words


@cache
def _address() -> Any:
    return re2.compile(
        rf"\b(?:(?:see|at|from|in|on|visit|refer to) )?http(?: \w+){{1,9}}? (?:licen[sc]\w*|copying"
        rf"|legal)(?: (?:txt|md|html|php|{TOKEN}))*(?: for (?:\w+ ){{0,3}}(?:information|details"
        rf"|terms|text))?\b"
    )


@cache
def _patterns(is_stated: bool) -> tuple[tuple[Any, ...], Any]:
    """Return the expressions, and the filter of RE2 that says in one pass for literals which of them words may match.

    What is put in the place of a match is in no expression: none matches then that did not match before.
    """
    found = tuple(compile_prose(rf"\b(?:{each})\b") for each in (*_PATTERNS, *(_BESIDE_A_LICENSE if is_stated else ())))
    possible = re2.Filter()
    for each in found:
        possible.Add(each.pattern, each.options)
    possible.Compile()
    return found, possible
