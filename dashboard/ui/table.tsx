/**
 * Tables. A row that opens something has a link in its first cell; a click anywhere in the row
 * follows it. `j` and `k` move along the rows, Enter opens, `x` chooses.
 */
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { go } from '../router.ts'
import { onKey } from './keys.ts'

export interface Column<Row> {
  readonly title: string
  readonly cell: (row: Row, index: number) => ComponentChildren
  /** Right-aligned figures. */
  readonly number?: boolean
  /** As narrow as its content. */
  readonly tight?: boolean
  /** Takes the room that is left, and is cut off there. Left out on a phone. */
  readonly fill?: boolean
  /** Left out on a phone. */
  readonly wide?: boolean
  /** Sentences: a table scrolls before their lines become very short. */
  readonly prose?: boolean
}

export interface TableProps<Row> {
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string
  readonly hrefOf?: (row: Row) => string | undefined
  readonly classOf?: (row: Row) => string | undefined
  /** Rows can be chosen, for actions on them. */
  readonly chosen?: ReadonlySet<string>
  readonly choose?: (keys: ReadonlySet<string>) => void
}

const CLASSES = ['number', 'tight', 'fill', 'wide', 'prose'] as const

const classOfColumn = (column: Column<never>) =>
  CLASSES.filter((name) => column[name]).join(' ') || undefined

export function Table<Row>(props: TableProps<Row>) {
  const { label, columns, rows, keyOf, chosen, choose } = props
  const here = useRowKeys(props)
  const last = useRef<number>()
  const all = rows.length > 0 && rows.every((row) => chosen?.has(keyOf(row)))
  const toggle = (index: number, shift: boolean) => {
    const next = new Set(chosen)
    const [from, to] = shift && last.current !== undefined ? [last.current, index] : [index, index]
    const isOn = !next.has(keyOf(rows[index] as Row))
    for (const row of rows.slice(Math.min(from, to), Math.max(from, to) + 1)) {
      if (isOn) next.add(keyOf(row))
      else next.delete(keyOf(row))
    }
    last.current = index
    choose?.(next)
  }
  return (
    // Scrolls by the keyboard as well, if it is wider than its panel.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the focus
    <section class="scroll" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {choose && (
              <th class="tight">
                <input
                  type="checkbox"
                  aria-label="Choose all rows"
                  checked={all}
                  onChange={() => choose(all ? new Set() : new Set(rows.map(keyOf)))}
                />
              </th>
            )}
            {columns.map((column) => (
              <th key={column.title} class={classOfColumn(column as Column<never>)} scope="col">
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <Row
              key={keyOf(row)}
              {...props}
              row={row}
              index={index}
              isHere={here === index}
              toggle={toggle}
            />
          ))}
        </tbody>
      </table>
    </section>
  )
}

interface RowProps<Row> extends TableProps<Row> {
  readonly row: Row
  readonly index: number
  readonly isHere: boolean
  readonly toggle: (index: number, shift: boolean) => void
}

function Row<Row>(props: RowProps<Row>) {
  const { row, index, columns, keyOf, hrefOf, classOf, chosen, choose, isHere, toggle } = props
  const href = hrefOf?.(row)
  const isChosen = chosen?.has(keyOf(row)) ?? false
  const classes = [href && 'opens', isHere && 'here', isChosen && 'chosen', classOf?.(row)]
  const open = (event: MouseEvent) => {
    if (href === undefined || (event.target as Element).closest('a, button, input, label')) return
    if (String(window.getSelection()) !== '') return
    if (event.metaKey || event.ctrlKey) window.open(href, '_blank', 'noopener')
    else go(href)
  }
  return (
    <tr class={classes.filter(Boolean).join(' ') || undefined} onClick={open}>
      {choose && (
        <td class="tight">
          <input
            type="checkbox"
            aria-label={`Choose row ${index + 1}`}
            checked={isChosen}
            onClick={(event) => toggle(index, event.shiftKey)}
          />
        </td>
      )}
      {columns.map((column) => (
        <td key={column.title} class={classOfColumn(column as Column<never>)}>
          {column.cell(row, index)}
        </td>
      ))}
    </tr>
  )
}

/** The row that the keyboard is at. */
function useRowKeys<Row>({ rows, hrefOf, keyOf, chosen, choose }: TableProps<Row>) {
  const [here, setHere] = useState(-1)
  const state = { rows, here, hrefOf, keyOf, chosen, choose }
  const latest = useRef(state)
  latest.current = state
  useLayoutEffect(() => {
    const move = (by: number) => {
      const { rows: all } = latest.current
      setHere((at) => Math.max(0, Math.min(all.length - 1, at + by)))
    }
    const at = () => latest.current.rows[latest.current.here]
    const stops = [
      onKey('j', () => move(1)),
      onKey('k', () => move(-1)),
      onKey('Enter', () => {
        const row = at()
        const href = row && latest.current.hrefOf?.(row)
        if (href) go(href)
      }),
      onKey('x', () => {
        const { choose: set, chosen: before, keyOf: key } = latest.current
        const row = at()
        if (row === undefined || set === undefined) return
        const next = new Set(before)
        if (!next.delete(key(row))) next.add(key(row))
        set(next)
      }),
    ]
    return () => {
      for (const stop of stops) stop()
    }
  }, [])
  return here
}
