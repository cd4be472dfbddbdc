%:include <stdio.h>

/* Digraphs and trigraphs, for keyboards that lack the brackets. */
%:define LENGTH(array) (sizeof(array) / sizeof((array)<:0:>))

static int squares<:8:> = <% 0, 1, 4, 9, 16, 25, 36, 49 %>;

int largest(void) <%
    int best = squares<:0:>;
    for (unsigned i = 1; i < LENGTH(squares); ++i) <%
        if (squares<:i:> > best) <%
            best = squares<:i:>;
        %>
    %>
    return best;
%>

int trigraph_length(void) ??<
    const char *text = "what??!";
    int n = 0;
    while (text??(n??)) ++n;
    return n;
??>
