"""Tables in Markdown with columns that are also aligned as text, printed line by line."""


def head(first, *names, width=72):
    row(first, *names, width=width, before="\n")
    print(f"| {'-' * width} |" + f" {'-' * 9}: |" * len(names), flush=True)


def row(first, *cells, width=72, before=""):
    print(f"{before}| {first:{width}s} |" + "".join(f" {cell:>10s} |" for cell in cells), flush=True)


def table(title, names, rows, form, width=28):
    """Print a table; `rows` is name -> numbers, where unknown numbers are left blank."""
    head(title, *names, width=width)
    for name, values in rows.items():
        row(name, *("" if value != value else form.format(value) for value in values), width=width)
