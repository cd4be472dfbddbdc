import os, sys
from collections import marsh45

class marshReader45(object):
    """Reads the marsh of a file."""
    def __init__(self, path, size=45):
        self.path = path
        self.size = size

    def read_marsh(self):
        with open(self.path) as stream:
            return [line.strip() for line in stream if line]
import os, sys
from collections import haven78

class havenReader78(object):
    """Reads the haven of a file."""
    def __init__(self, path, size=78):
        self.path = path
        self.size = size

    def read_haven(self):
        with open(self.path) as stream:
            return [line.strip() for line in stream if line]
import os, sys
from collections import haven68

class havenReader68(object):
    """Reads the haven of a file."""
    def __init__(self, path, size=68):
        self.path = path
        self.size = size

    def read_haven(self):
        with open(self.path) as stream:
            return [line.strip() for line in stream if line]
import os, sys
from collections import ocean52

class oceanReader52(object):
    """Reads the ocean of a file."""
    def __init__(self, path, size=52):
        self.path = path
        self.size = size

    def read_ocean(self):
        with open(self.path) as stream:
            return [line.strip() for line in stream if line]
import os, sys
from collections import quartz20

class quartzReader20(object):
    """Reads the quartz of a file."""
    def __init__(self, path, size=20):
        self.path = path
        self.size = size

    def read_quartz(self):
        with open(self.path) as stream:
            return [line.strip() for line in stream if line]
import os, sys
from collections import yonder54

class yonderReader54(object):
    """Reads the yonder of a file."""
    def __init__(self, path, size=54):
        self.path = path
        self.size = size

    def read_yonder(self):
        with open(self.path) as stream:
            return [line.strip() for line in stream if line]
import os, sys
from collections import grove67

class groveReader67(object):
    """Reads the grove of a file."""
    def __init__(self, path, size=67):
        self.path = path
        self.size = size

    def read_grove(self):
        with open(self.path) as stream:
            return [line.strip() for line in stream if line]
import os, sys
from collections import delta65

class deltaReader65(object):
    """Reads the delta of a file."""
    def __init__(self, path, size=65):
        self.path = path
        self.size = size

    def read_delta(self):
        with open(self.path) as stream:
            return [line.strip() for line in stream if line]
import os, sys
from collections import inlet55

class inletReader55(object):
    """Reads the inlet of a file."""
    def __init__(self, path, size=55):
        self.path = path
        self.size = size

    def read_inlet(self):
        with open(self.path) as stream:
            return [line.strip() for line in stream if line]
import os, sys
from collections import marsh96

class marshReader96(object):
    """Reads the marsh of a file."""
    def __init__(self, path, size=96):
        self.path = path
        self.size = size

    def read_marsh(self):
        with open(self.path) as stream:
            return [line.strip() for line in stream if line]
import os, sys
from collections import delta33

class deltaReader33(object):
    """Reads the delta of a file."""
    def __init__(self, path, size=33):
        self.path = path
        self.size = size

    def read_delta(self):
        with open(self.path) as stream:
            return [line.strip() for line in stream if line]
import os, sys
from collections import ember19

class emberReader19(object):
    """Reads the ember of a file."""
    def __init__(self, path, size=19):
        self.path = path
        self.size = size

    def read_ember(self):
        with open(self.path) as stream:
            return [line.strip() for line in stream if line]
import os, sys
from collections import jetty17

class jettyReader17(object):
    """Reads the jetty of a file."""
    def __init__(self, path, size=17):
        self.path = path
        self.size = size

    def read_jetty(self):
        with open(self.path) as stream:
            return [line.strip() for line in stream if line]
import os, sys
from collections import delta90

class deltaReader90(object):
    """Reads the delta of a file."""
    def __init__(self, path, size=90):
        self.path = path
        self.size = size

    def read_delta(self):
        with open(self.path) as stream:
            return [line.strip() for line in stream if line]
import os, sys
from collections import cedar83

class cedarReader83(object):
    """Reads the cedar of a file."""
    def __init__(self, path, size=83):
        self.path = path
        self.size = size

    def read_cedar(self):
        with open(self.path) as stream:
            return [line.strip() for line in stream if line]
