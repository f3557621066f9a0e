/** Small parts that every page uses. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Refused } from '../api/client.ts'
import { now } from '../api/session.ts'
import { count, exact, relative } from '../format.ts'

/** A time, relative to now; the exact one on hover. */
export function Time({ at, none = '–' }: { at: number | null | undefined; none?: string }) {
  if (at === null || at === undefined) return <span class="muted">{none}</span>
  return (
    <time class="nowrap" dateTime={dateTimeOf(at)} title={exact(at)}>
      {relative(at, now.value)}
    </time>
  )
}

function dateTimeOf(at: number): string {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? '' : date.toISOString()
}

/** A number that fades for a moment when it changes. */
export function Count({ value, of = count }: { value: number; of?: (value: number) => string }) {
  const text = of(value)
  return (
    <span key={text} class="changed">
      {text}
    </span>
  )
}

/** Text of strangers: never read as markup, and isolated from text of another direction. */
export function Name({ text, clip = false }: { text: string; clip?: boolean }) {
  return (
    <bdi class={clip ? 'name clip' : 'name'} title={clip ? text : undefined}>
      {text}
    </bdi>
  )
}

/** A long text. It scrolls inside of its panel, by the keyboard as well. */
export function Lines({ text }: { text: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the focus
    <pre tabIndex={0}>{text}</pre>
  )
}

/** A button that copies a text, also on pages without TLS. */
export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [done, setDone] = useState(false)
  const timer = useRef<number>()
  useEffect(() => () => clearTimeout(timer.current), [])
  const copy = async () => {
    await copyText(text)
    setDone(true)
    clearTimeout(timer.current)
    timer.current = window.setTimeout(() => setDone(false), 1500)
  }
  return (
    <button type="button" class="copy" onClick={() => void copy()}>
      <span aria-live="polite">{done ? 'Copied' : label}</span>
    </button>
  )
}

async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
  } catch {
    // Browsers offer the clipboard on secure pages alone; a selection works on all.
    const field = document.createElement('textarea')
    field.value = text
    document.body.append(field)
    field.select()
    document.execCommand('copy')
    field.remove()
  }
}

/** A command line that does the same. */
export function Cli({ line }: { line: string }) {
  return (
    <div class="cli">
      <code>{line}</code>
      <Copy text={line} />
    </div>
  )
}

/** An empty page says what would fill it. */
export function Empty({
  title,
  children,
  line,
}: {
  title: string
  children?: ComponentChildren
  line?: string
}) {
  return (
    <div class="empty">
      <h3>{title}</h3>
      {children && <p>{children}</p>}
      {line && <Cli line={line} />}
    </div>
  )
}

/** What failed, and a way to try again. What is on the screen stays. */
export function Failure({ error, retry }: { error: Refused | undefined; retry?: () => void }) {
  if (error === undefined) return null
  return (
    <div class="notice bad row" role="alert">
      <span>
        {error.message}. {error.hint}
      </span>
      {retry && (
        <button type="button" class="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  )
}

export function Panel({
  title,
  flush = false,
  children,
  aside,
}: {
  title?: string
  flush?: boolean
  children: ComponentChildren
  aside?: ComponentChildren
}) {
  return (
    <section class={flush ? 'panel flush' : 'panel'} aria-label={title}>
      {title && (aside ? <SpreadTitle title={title} aside={aside} /> : <h2>{title}</h2>)}
      {children}
    </section>
  )
}

function SpreadTitle({ title, aside }: { title: string; aside: ComponentChildren }) {
  return (
    <div class="spread">
      <h2>{title}</h2>
      <span class="small muted">{aside}</span>
    </div>
  )
}

/** The head of a page: its title, what belongs to it, and its actions at the right. */
export function Top({
  title,
  children,
  actions,
}: {
  title: string
  children?: ComponentChildren
  actions?: ComponentChildren
}) {
  return (
    <header class="top">
      <h1>
        <bdi>{title}</bdi>
      </h1>
      {children}
      {actions && <div class="right">{actions}</div>}
    </header>
  )
}

export interface Tab {
  readonly id: string
  readonly label: string
}

export function Tabs({
  tabs,
  chosen,
  choose,
}: {
  tabs: readonly Tab[]
  chosen: string
  choose: (id: string) => void
}) {
  const step = (event: KeyboardEvent) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
    if (by === undefined) return
    event.preventDefault()
    event.stopPropagation()
    const at = tabs.findIndex(({ id }) => id === chosen)
    const next = tabs[(at + by + tabs.length) % tabs.length]
    if (next === undefined) return
    choose(next.id)
    document.getElementById(`tab-${next.id}`)?.focus()
  }
  return (
    <div class="tabs" role="tablist" onKeyDown={step}>
      {tabs.map(({ id, label }) => (
        <button
          key={id}
          id={`tab-${id}`}
          type="button"
          role="tab"
          aria-selected={id === chosen}
          tabIndex={id === chosen ? 0 : -1}
          onClick={() => choose(id)}
        >
          {label}
        </button>
      ))}
    </div>
  )
}

/** How much of something is used. */
export function Meter({ part, tone, label }: { part: number; tone?: string; label: string }) {
  const percent = Math.round(Math.min(1, Math.max(0, part)) * 100)
  return (
    <div
      class={tone ? `meter tone-${tone}` : 'meter'}
      role="img"
      aria-label={`${label}: ${percent} %`}
      title={`${label}: ${percent} %`}
    >
      <i style={{ width: `${percent}%` }} />
    </div>
  )
}
