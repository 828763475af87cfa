/**
 * A bounded cache with a share for each workspace: what is over the bound goes, the least recently used first, from the
 * workspace that holds the most. One tenant never evicts the others.
 */

interface Entry {
  readonly workspaceId: string;
  /** In the unit of the bound. */
  readonly size: number;
}

interface CachedWorkspace {
  size: number;
  /** The least recently used first. */
  readonly keys: Set<string>;
}

export class WorkspaceCache<Value extends Entry> {
  readonly #entries = new Map<string, Value>();
  readonly #held = new Map<string, CachedWorkspace>();
  readonly #max: number;
  #size = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Without noting a use. */
  peek(key: string): Value | undefined {
    return this.#entries.get(key);
  }

  get(key: string): Value | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    const keys = this.#held.get(value.workspaceId)?.keys;
    keys?.delete(key);
    keys?.add(key);
    return value;
  }

  set(key: string, value: Value): void {
    this.delete(key);
    const { workspaceId, size } = value;
    this.#entries.set(key, value);
    const held = this.#held.get(workspaceId) ?? { size: 0, keys: new Set() };
    this.#held.set(workspaceId, held);
    held.keys.add(key);
    held.size += size;
    this.#size += size;
    while (this.#size > this.#max) this.#evict();
  }

  delete(key: string): void {
    const value = this.#entries.get(key);
    if (value === undefined) return;
    this.#entries.delete(key);
    this.#size -= value.size;
    const held = this.#held.get(value.workspaceId);
    if (held === undefined) return;
    held.keys.delete(key);
    held.size -= value.size;
    if (held.keys.size === 0) this.#held.delete(value.workspaceId);
  }

  #evict(): void {
    let largest: CachedWorkspace | null = null;
    for (const held of this.#held.values()) if (largest === null || held.size > largest.size) largest = held;
    const [oldest = ''] = largest?.keys ?? [];
    this.delete(oldest);
  }
}
