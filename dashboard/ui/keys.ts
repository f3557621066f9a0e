/** Keys of the whole page. They do nothing while a field or a dialog has the focus. */

// Keys are registered in layout effects: a key that is pressed as soon as a page is seen must work.
type Handler = (event: KeyboardEvent) => void
const handlers = new Map<string, Handler[]>()

/** Calls a function when a key is pressed; the latest handler of a key is called. */
export function onKey(key: string, handler: Handler): () => void {
  handlers.set(key, [...(handlers.get(key) ?? []), handler])
  return () => {
    handlers.set(
      key,
      (handlers.get(key) ?? []).filter((one) => one !== handler),
    )
  }
}

const SEQUENCE_MS = 1200

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof Element)) return false
  return target.closest('input:not([type=checkbox]):not([type=range]), textarea, select') !== null
}

/** `g` begins a sequence: `g j` is handled as the key `g j`. */
export function startKeys(): void {
  let prefix = ''
  let since = 0
  window.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.isComposing) return
    const isPalette = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k'
    if (!isPalette && (event.ctrlKey || event.metaKey || event.altKey)) return
    if (!isPalette && isTyping(event.target)) return
    if (document.querySelector('dialog[open]') !== null) return
    const plain = isPalette ? '/' : event.key
    const isFresh = Date.now() - since < SEQUENCE_MS
    const key = prefix !== '' && isFresh ? `${prefix} ${plain}` : plain
    prefix = plain === 'g' && key === 'g' ? 'g' : ''
    since = Date.now()
    const handler = handlers.get(key)?.at(-1)
    if (handler === undefined) return
    // A link or button that has the focus takes Enter itself.
    if (plain === 'Enter' && event.target instanceof Element) {
      if (event.target.closest('a, button, summary') !== null) return
    }
    event.preventDefault()
    handler(event)
  })
}
