"""Tables for a terminal, and one HTML file with plots that needs nothing from elsewhere."""
import html
import io
from pathlib import Path

import matplotlib

matplotlib.use('svg')
from matplotlib import pyplot  # noqa: E402  (the backend has to be chosen first)

COLOURS = {'heap': '#c2571a', 'inplace': '#1b6ca8'}
BARS = ' ▁▂▃▄▅▆▇█'
STYLE = '''
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1080px; margin: 2em auto; padding: 0 1em; color: #222 }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin-top: 2em }
table { border-collapse: collapse; margin: 1em 0 } th, td { padding: .25em .8em; border-bottom: 1px solid #ddd }
th { text-align: right; background: #f4f4f4 } th:first-child { text-align: left } td { text-align: right; font-variant-numeric: tabular-nums }
td:first-child { text-align: left } tr.group td { font-weight: 600; background: #fafafa }
.pass { color: #17692b } .FAIL { color: #b3261e; font-weight: 600 }
.plots { display: flex; flex-wrap: wrap; gap: 1em } .plots svg { width: 520px; height: auto }
dl { display: grid; grid-template-columns: max-content auto; gap: .15em 1em } dt { color: #666 } dd { margin: 0 }
'''


def sparkline(values, top, width=16):
    """The course of values as a few block characters; top is the value of a full block."""
    step = max(1, len(values) / width)
    means = []
    for index in range(min(width, len(values))):
        part = values[int(index * step):max(int((index + 1) * step), int(index * step) + 1)]
        means.append(sum(part) / len(part))
    return ''.join(BARS[min(8, round(8 * mean / top))] if top else BARS[0] for mean in means)


def number(value, unit=''):
    """Three to four significant digits, thousands apart; text passes."""
    if value is None:
        return ''
    if isinstance(value, str):
        return value
    if unit == 'MB':
        value /= 1e6
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 10 else 2
    return f'{value:,.{digits}f}'


def text_table(heads, rows):
    """Rows of one cell are captions; the first column is left-aligned."""
    widths = [max(len(row[column]) for row in [heads, *rows] if len(row) > 1) for column in range(len(heads))]
    lines = []
    for row in [heads, *rows]:
        cells = [cell.ljust(width) if index == 0 else cell.rjust(width)
                 for index, (cell, width) in enumerate(zip(row, widths))]
        lines.append('  '.join(cells).rstrip() if len(row) > 1 else f'\n{row[0]}')
    return '\n'.join(lines)


def html_table(heads, rows):
    def cells(row):
        if len(row) == 1:
            return f'<tr class="group"><td colspan="{len(heads)}">{html.escape(row[0])}</td></tr>'
        return '<tr>' + ''.join(f'<td class="{html.escape(cell) if cell in ("pass", "FAIL") else ""}">'
                                f'{html.escape(cell)}</td>' for cell in row) + '</tr>'
    head = ''.join(f'<th>{html.escape(name)}</th>' for name in heads)
    return f'<table><tr>{head}</tr>{"".join(map(cells, rows))}</table>'


def draw(axes, title, unit, series, holds=()):
    """One chart: series maps access methods to (second, value) pairs; holds are shaded."""
    for begin, end in holds:
        axes.axvspan(begin, end, color='#888', alpha=0.15, linewidth=0)
    for am, points in series.items():
        axes.plot(*zip(*points), color=COLOURS[am], label=am, linewidth=1.6)
    axes.set_title(title, fontsize=10, loc='left')
    axes.set_xlabel('seconds (shaded: a snapshot is held)' if holds else 'seconds', fontsize=8)
    axes.set_ylabel(unit, fontsize=8)
    axes.tick_params(labelsize=8)
    axes.set_ylim(0, 1.08 * max(value for points in series.values() for _, value in points))
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8, frameon=False)


def svg(figure):
    text = io.StringIO()
    figure.savefig(text, format='svg', metadata=dict.fromkeys(('Creator', 'Date', 'Format', 'Type')))
    pyplot.close(figure)
    return text.getvalue()[text.getvalue().index('<svg'):]


def plot(*chart):
    """One chart, the arguments of draw, as SVG text."""
    figure, axes = pyplot.subplots(figsize=(6.2, 2.9), layout='constrained')
    draw(axes, *chart)
    return svg(figure)


def write_picture(path, charts):
    """Charts side by side in an SVG file that is small and the same for the same values: for the README."""
    with matplotlib.rc_context({'svg.fonttype': 'none', 'svg.hashsalt': 'demo', 'font.family': 'sans-serif'}):
        figure, axes = pyplot.subplots(1, len(charts), figsize=(4.6 * len(charts), 2.7), layout='constrained')
        figure.patch.set_facecolor('white')
        for each, chart in zip(axes, charts):
            draw(each, *chart)
        Path(path).write_text(svg(figure), encoding='utf-8')


def definitions(environment):
    flat = {**environment, 'settings': ', '.join(f'{name} = {value}' for name, value in environment['settings'].items())}
    items = ''.join(f'<dt>{html.escape(name)}</dt><dd>{html.escape(str(value))}</dd>' for name, value in flat.items())
    return f'<dl>{items}</dl>'


def write_page(path, title, parts):
    """parts: pieces of HTML, in order."""
    page = (f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
            f'<style>{STYLE}</style></head><body><h1>{html.escape(title)}</h1>{"".join(parts)}</body></html>')
    Path(path).write_text(page, encoding='utf-8')


def paragraph(text):
    return f'<p>{html.escape(text)}</p>'


def heading(text):
    return f'<h2>{html.escape(text)}</h2>'


def plots(charts):
    return f'<div class="plots">{"".join(charts)}</div>'
