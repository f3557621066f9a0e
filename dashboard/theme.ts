/** Dark or light: as the system says, unless the person has chosen. */
import { computed, effect, signal } from '@preact/signals'

export type Theme = 'system' | 'light' | 'dark'

const KEY = 'pawl.theme'
const system = window.matchMedia('(prefers-color-scheme: dark)')
const systemIsDark = signal(system.matches)
const stored = localStorage.getItem(KEY)
const chosen = signal<Theme>(stored === 'light' || stored === 'dark' ? stored : 'system')

/** What is shown. */
export const theme = computed(() =>
  chosen.value === 'system' ? (systemIsDark.value ? 'dark' : 'light') : chosen.value,
)

export function setTheme(value: Theme): void {
  chosen.value = value
  localStorage.setItem(KEY, value)
}

/** The other one. */
export function nextTheme(): Theme {
  return theme.value === 'dark' ? 'light' : 'dark'
}

export function startTheme(): void {
  system.addEventListener('change', (event) => {
    systemIsDark.value = event.matches
  })
  effect(() => {
    document.documentElement.dataset.theme = theme.value
  })
}
