/**
 * One filter bar: `state:failed queue:billing text`. Conditions are chips, kept in the query of the
 * address, so that a filtered list can be sent to somebody. Typing offers names and values.
 */
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { place, setQuery } from '../router.ts'
import { onKey } from './keys.ts'
import { Name } from './parts.tsx'

export interface FilterField {
  readonly name: string
  readonly says: string
  /** Values to offer. */
  readonly values?: readonly string[]
}

/** The conditions in the address, by name. */
export function filterIn(fields: readonly FilterField[]): Record<string, string> {
  const { query } = place.value
  const given = fields.map(({ name }) => [name, query.get(name) ?? ''] as const)
  return Object.fromEntries(given.filter(([, value]) => value !== ''))
}

interface Offer {
  readonly text: string
  readonly says: string
  readonly isWhole: boolean
}

function offersFor(text: string, fields: readonly FilterField[]): Offer[] {
  const [name = '', ...rest] = text.split(':')
  const field = fields.find((one) => one.name === name)
  if (rest.length > 0 && field !== undefined) {
    const begun = rest.join(':').toLowerCase()
    return (field.values ?? [])
      .filter((value) => value.toLowerCase().includes(begun))
      .slice(0, 12)
      .map((value) => ({ text: `${name}:${value}`, says: '', isWhole: true }))
  }
  return fields
    .filter((one) => one.name.toLowerCase().startsWith(text.toLowerCase()))
    .map((one) => ({ text: `${one.name}:`, says: one.says, isWhole: false }))
}

/** What is typed, what is offered for it, and what the keys do. */
function useTyping(fields: readonly FilterField[], fallback: string) {
  const [text, setText] = useState('')
  const [open, setOpen] = useState(false)
  const [at, setAt] = useState(-1)
  const input = useRef<HTMLInputElement>(null)
  const conditions = Object.entries(filterIn(fields))
  const offers = open ? offersFor(text, fields) : []
  useLayoutEffect(() => onKey('f', () => input.current?.focus()), [])

  const add = (whole: string) => {
    const [name = '', ...rest] = whole.split(':')
    const isNamed = rest.length > 0 && fields.some((one) => one.name === name)
    const value = (isNamed ? rest.join(':') : whole).trim()
    if (value !== '') setQuery({ [isNamed ? name : fallback]: value, after: undefined })
    setText('')
    setAt(-1)
  }
  const take = (offer: Offer) => {
    setAt(-1)
    if (offer.isWhole) add(offer.text)
    else setText(offer.text)
    input.current?.focus()
  }
  const press = (event: KeyboardEvent) => {
    const offer = offers[at]
    const first = offers[Math.max(at, 0)]
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (by !== undefined) setAt(Math.max(-1, Math.min(offers.length - 1, at + by)))
    else if (event.key === 'Tab' && text !== '' && first !== undefined) take(first)
    else if (event.key === 'Enter' && offer !== undefined) take(offer)
    else if (event.key === 'Enter') add(text)
    else {
      const last = conditions.at(-1)?.[0]
      if (event.key === 'Escape') input.current?.blur()
      if (event.key === 'Backspace' && text === '' && last !== undefined) {
        setQuery({ [last]: undefined, after: undefined })
      }
      return
    }
    event.preventDefault()
  }
  return { text, setText, setOpen, at, input, conditions, offers, take, press }
}

/** `fallback` is the field that text without a name belongs to. */
export function FilterBar({
  fields,
  fallback,
  hint = 'Filter: state, type, queue, error…',
}: {
  fields: readonly FilterField[]
  fallback: string
  hint?: string
}) {
  const list = useId()
  const typing = useTyping(fields, fallback)
  const { text, setText, setOpen, at, input, conditions, offers, take, press } = typing
  return (
    <search class="filters">
      {conditions.map(([name, value]) => (
        <span class="chip" key={name}>
          <span class="muted">{name}</span> <Name text={value} clip />
          <button
            type="button"
            aria-label={`Remove the condition ${name}`}
            onClick={() => setQuery({ [name]: undefined, after: undefined })}
          >
            ×
          </button>
        </span>
      ))}
      <input
        ref={input}
        value={text}
        aria-label="Filter"
        role="combobox"
        aria-expanded={offers.length > 0}
        aria-controls={list}
        aria-autocomplete="list"
        placeholder={conditions.length === 0 ? hint : 'and…'}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={press}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
      />
      <div
        class="list"
        id={list}
        role="listbox"
        aria-label="Conditions"
        hidden={offers.length === 0}
      >
        {offers.map((offer, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keyboard
          // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus
          <div
            key={offer.text}
            role="option"
            aria-selected={index === at}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => take(offer)}
          >
            <Name text={offer.text} />
            <span class="muted small">{offer.says}</span>
          </div>
        ))}
      </div>
    </search>
  )
}
