/** States: a sign, a word and a colour, the same in tables, graphs and charts. */
import type { Tone } from '../machine-data.ts'

const HALF = 'M6.5 1.5a5 5 0 0 1 0 10z'
const QUARTER = 'M6.5 6.5v-5a5 5 0 0 1 5 5z'
const RING = { cx: 6.5, cy: 6.5, r: 5 }

const line = { fill: 'none', stroke: 'currentColor', 'stroke-width': 1.6 } as const

/** The drawing of a sign, 13 by 13. */
export function SignShape({ tone }: { tone: Tone }) {
  switch (tone) {
    case 'ready':
      return (
        <>
          <circle {...RING} {...line} />
          <path d={QUARTER} fill="currentColor" />
        </>
      )
    case 'running':
      return (
        <>
          <circle {...RING} {...line} />
          <path d={HALF} fill="currentColor" />
        </>
      )
    case 'waiting':
      return (
        <>
          <circle {...RING} {...line} />
          <circle {...RING} r={2} fill="currentColor" />
        </>
      )
    case 'retrying':
      return (
        <>
          <path d="M10.9 8.6a4.8 4.8 0 1 1-.1-4.4" {...line} />
          <path d="M11.6 1.4v3.4H8.2z" fill="currentColor" />
        </>
      )
    case 'blocked':
      return <path d="M6.5 1.2l5.6 10.2H.9z" fill="currentColor" />
    case 'succeeded':
      return <circle {...RING} r={5.6} fill="currentColor" />
    case 'failed':
      return <path d="M2.4 2.4l8.2 8.2m0-8.2l-8.2 8.2" {...line} stroke-width={2.1} />
    case 'parked':
      return <path d="M6.5.6l5.9 5.9-5.9 5.9L.6 6.5z" fill="currentColor" />
    case 'cancelled':
      return (
        <>
          <circle {...RING} {...line} />
          <path d="M3 10L10 3" {...line} />
        </>
      )
    default:
      return <circle {...RING} {...line} />
  }
}

export function Sign({ tone }: { tone: Tone }) {
  return (
    <svg class="sign" viewBox="0 0 13 13" aria-hidden="true">
      <SignShape tone={tone} />
    </svg>
  )
}

/** A state as sign, word and colour. */
export function State({ tone, word }: { tone: Tone; word: string }) {
  return (
    <span class={`state tone-${tone}`}>
      <Sign tone={tone} />
      <span class="name" title={word}>
        {word}
      </span>
    </span>
  )
}
