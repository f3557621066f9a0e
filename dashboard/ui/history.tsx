/** Time travel: a rail of positions, and what changed at one of them. */

import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Change } from '../../src/audit/diff.ts'
import { onKey } from './keys.ts'

/** Above this many positions, single dots could not be told apart. */
const DOTS_MAX = 60

/** A rail from 1 to `last`. Arrow keys step, Home and End jump, `.` returns to now. */
export function Rail({
  at,
  last,
  move,
  label,
  first,
  final,
  children,
}: {
  at: number
  last: number
  move: (to: number | undefined) => void
  label: string
  first: string
  final: string
  children: ComponentChildren
}) {
  const latest = useRef({ at, last, move })
  latest.current = { at, last, move }
  useLayoutEffect(() => {
    const step = (by: number) => () => {
      const now = latest.current
      now.move(Math.max(1, Math.min(now.last, now.at + by)))
    }
    const stops = [
      onKey('ArrowLeft', step(-1)),
      onKey('ArrowRight', step(1)),
      onKey('Home', () => latest.current.move(1)),
      onKey('End', () => latest.current.move(latest.current.last)),
      onKey('.', () => latest.current.move(undefined)),
    ]
    return () => {
      for (const stop of stops) stop()
    }
  }, [])
  const left = (position: number) => `${last <= 1 ? 100 : ((position - 1) / (last - 1)) * 100}%`
  const dots = last <= DOTS_MAX ? Array.from({ length: last }, (_, i) => i + 1) : []
  return (
    <div class="rail">
      <div class="track">
        <div class="line" />
        <div class="done" style={{ width: left(at) }} />
        {dots.map((position) => (
          <div
            key={position}
            class={position <= at ? 'dot past' : 'dot'}
            style={{ left: left(position) }}
          />
        ))}
        <input
          type="range"
          min={1}
          max={last}
          step={1}
          value={at}
          aria-label={label}
          onInput={(event) => move(Number(event.currentTarget.value))}
        />
        <div class="knob" style={{ left: left(at) }} />
      </div>
      <div class="says">
        <span>{first}</span>
        <span class="at" aria-live="polite">
          {children}
        </span>
        <span>{final}</span>
      </div>
    </div>
  )
}

function valueText(value: unknown): string {
  if (value === undefined || value === null) return '–'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Changes as a table: path, before, after. */
export function Diff({ changes }: { changes: readonly Change[] }) {
  if (changes.length === 0) return <p class="muted small">Nothing else changed.</p>
  return (
    <table class="diff mono">
      <tbody>
        {changes.map(({ path, before, after }) => (
          <tr key={path.join('\n')}>
            <td class="tight">{path.join('.')}</td>
            <td>
              {before !== undefined && before !== null && <del>{valueText(before)}</del>}{' '}
              <ins>{valueText(after)}</ins>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
