/**
 * How many requests may be under way, and whose turn it is. A first try that may not begin yet waits in a line of its
 * endpoint, what is tried again or replayed in another; tenants take turns, and so do the endpoints of one tenant.
 * Of every limit at most half is for the second line, so first tries always find a place; and of an endpoint's places one
 * is the second line's as soon as it waits, so that it moves on too.
 */

export interface Limits {
  readonly endpoint: number;
  readonly tenant: number;
  readonly total: number;
}

export interface Waiting {
  readonly endpointId: string;
  readonly workspaceId: string;
  /** 0: a first try. */
  readonly queueLane: number;
  readonly body: { readonly length: number };
}

/** Lines may hold what an endpoint will have answered within this, milliseconds: so the next is there when one ends. */
const aheadMs = 100;
/** And at most so many times what may be under way. */
const mostAhead = 4;
/** Bytes that wait and are under way, above which nothing more is claimed. */
const mostBytes = 64 * 1_024 * 1_024;

interface Count {
  underWay: number;
  /** Of those, retries and replays. */
  later: number;
  waiting: number;
  waitingLater: number;
  reserved: number;
}

interface Seat<Item> extends Count {
  readonly first: Item[];
  readonly second: Item[];
  /** Mean time of its answers, milliseconds; null before the first one. */
  paceMs: number | null;
}

interface Tenant<Item> extends Count {
  readonly seats: Map<string, Seat<Item>>;
  /** Seats at which something waits, in the order of their turns. */
  readonly turns: Map<string, Seat<Item>>;
}

const nobody = (): Count => ({ underWay: 0, later: 0, waiting: 0, waitingLater: 0, reserved: 0 });
const busy = ({ underWay, waiting, reserved }: Count): number => underWay + waiting + reserved;
const half = (limit: number): number => Math.max(1, limit >> 1);

export class Places<Item extends Waiting> {
  readonly #limits: Limits;
  readonly #tenants = new Map<string, Tenant<Item>>();
  /** Tenants of whom something waits, in the order of their turns. */
  readonly #turns = new Map<string, Tenant<Item>>();
  readonly #all = nobody();
  #bytes = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  get underWay(): number {
    return this.#all.underWay;
  }

  get waiting(): number {
    return this.#all.waiting;
  }

  /** How many more may be taken in for this endpoint now: at all, and of retries and replays. */
  room(endpointId: string, workspaceId: string): { readonly all: number; readonly later: number } {
    const tenant = this.#tenants.get(workspaceId);
    const seat = tenant?.seats.get(endpointId);
    if (this.#bytes > mostBytes) return { all: 0, later: 0 };
    const { endpoint, tenant: perTenant, total } = this.#limits;
    const ahead = aheadOf(seat?.paceMs ?? null, endpoint);
    const all = Math.min(
      endpoint - (seat === undefined ? 0 : busy(seat)),
      perTenant - (tenant === undefined ? 0 : busy(tenant)),
      total - busy(this.#all),
    );
    const later = Math.min(
      half(endpoint) - (seat === undefined ? 0 : seat.later + seat.waitingLater),
      half(perTenant) - (tenant === undefined ? 0 : tenant.later + tenant.waitingLater),
      half(total) - (this.#all.later + this.#all.waitingLater),
    );
    const allRoom = Math.max(0, all + ahead);
    // A handful is not worth a claim while there is still work in the line.
    if (allRoom < (endpoint + ahead) / 4 && (seat?.waiting ?? 0) > 0) return { all: 0, later: 0 };
    return { all: allRoom, later: Math.min(allRoom, Math.max(0, later + (ahead >> 1))) };
  }

  /** Keeps up to `wanted` of the room for first tries that come later. */
  reserve(endpointId: string, workspaceId: string, wanted: number): number {
    const count = Math.min(wanted, this.room(endpointId, workspaceId).all);
    if (count > 0) this.#reserved(endpointId, workspaceId, count);
    return count;
  }

  unreserve(endpointId: string, workspaceId: string, count: number): void {
    this.#reserved(endpointId, workspaceId, -count);
    this.#forget(endpointId, workspaceId);
  }

  /** Into the line; `start` lets go what may. */
  add(item: Item): void {
    const tenant = this.#tenantOf(item.workspaceId);
    const seat = this.#seatOf(tenant, item.endpointId);
    (item.queueLane === 0 ? seat.first : seat.second).push(item);
    for (const count of [seat, tenant, this.#all]) {
      count.waiting += 1;
      if (item.queueLane !== 0) count.waitingLater += 1;
    }
    this.#bytes += item.body.length;
    tenant.turns.set(item.endpointId, seat);
    this.#turns.set(item.workspaceId, tenant);
  }

  /**
   * Lets go whatever may, tenants in turn. `begin` says whether it really began; what did not takes no place.
   */
  start(begin: (item: Item) => boolean): void {
    // A tenant that had its turn is put behind the others, where this loop comes to it once more.
    for (const [workspaceId, tenant] of this.#turns) {
      if (this.#all.underWay >= this.#limits.total) return;
      const item = this.#next(tenant);
      if (item === null) continue;
      this.#turns.delete(workspaceId);
      if (tenant.waiting > 0) this.#turns.set(workspaceId, tenant);
      this.#moved(item, 1);
      if (!begin(item)) this.ended(item, null);
    }
  }

  /** One that had begun is over. @param tookMs null when it tells nothing about the endpoint's pace. */
  ended(item: Item, tookMs: number | null): void {
    this.#moved(item, -1);
    this.#bytes -= item.body.length;
    const seat = this.#tenants.get(item.workspaceId)?.seats.get(item.endpointId);
    if (seat !== undefined && tookMs !== null) {
      seat.paceMs = seat.paceMs === null ? tookMs : seat.paceMs * 0.9 + tookMs * 0.1;
    }
    this.#forget(item.endpointId, item.workspaceId);
  }

  /** Takes out of the lines, and returns, what is not to stay. */
  withdraw(stays: (item: Item) => boolean): readonly Item[] {
    const out: Item[] = [];
    for (const [workspaceId, tenant] of this.#turns) {
      for (const [endpointId, seat] of tenant.turns) {
        for (const line of [seat.first, seat.second]) {
          const kept = line.filter((item) => stays(item) || !out.push(item));
          line.splice(0, line.length, ...kept);
        }
        if (seat.first.length + seat.second.length === 0) tenant.turns.delete(endpointId);
      }
      if (tenant.turns.size === 0) this.#turns.delete(workspaceId);
    }
    for (const item of out) {
      this.#waits(item, -1);
      this.#bytes -= item.body.length;
      this.#forget(item.endpointId, item.workspaceId);
    }
    return out;
  }

  #next(tenant: Tenant<Item>): Item | null {
    const { endpoint, tenant: perTenant, total } = this.#limits;
    if (tenant.underWay >= perTenant) return null;
    const mayBeLater = tenant.later < half(perTenant) && this.#all.later < half(total);
    for (const [endpointId, seat] of tenant.turns) {
      if (seat.underWay >= endpoint) continue;
      const second = seat.second.length > 0 && mayBeLater && seat.later < half(endpoint);
      const item = second && (seat.first.length === 0 || seat.later === 0) ? seat.second.shift() : seat.first.shift();
      if (item === undefined) continue;
      tenant.turns.delete(endpointId);
      if (seat.first.length + seat.second.length > 0) tenant.turns.set(endpointId, seat);
      this.#waits(item, -1);
      return item;
    }
    return null;
  }

  #waits(item: Item, by: 1 | -1): void {
    const tenant = this.#tenantOf(item.workspaceId);
    for (const count of [this.#seatOf(tenant, item.endpointId), tenant, this.#all]) {
      count.waiting += by;
      if (item.queueLane !== 0) count.waitingLater += by;
    }
  }

  #moved(item: Item, by: 1 | -1): void {
    const tenant = this.#tenantOf(item.workspaceId);
    for (const count of [this.#seatOf(tenant, item.endpointId), tenant, this.#all]) {
      count.underWay += by;
      if (item.queueLane !== 0) count.later += by;
    }
  }

  #reserved(endpointId: string, workspaceId: string, by: number): void {
    const tenant = this.#tenantOf(workspaceId);
    for (const count of [this.#seatOf(tenant, endpointId), tenant, this.#all]) count.reserved += by;
  }

  #tenantOf(workspaceId: string): Tenant<Item> {
    const known = this.#tenants.get(workspaceId);
    if (known !== undefined) return known;
    const tenant: Tenant<Item> = { ...nobody(), seats: new Map(), turns: new Map() };
    this.#tenants.set(workspaceId, tenant);
    return tenant;
  }

  #seatOf(tenant: Tenant<Item>, endpointId: string): Seat<Item> {
    const known = tenant.seats.get(endpointId);
    if (known !== undefined) return known;
    const seat: Seat<Item> = { ...nobody(), first: [], second: [], paceMs: null };
    tenant.seats.set(endpointId, seat);
    return seat;
  }

  /** Seats are kept for their pace until there are many. */
  #forget(endpointId: string, workspaceId: string): void {
    const tenant = this.#tenants.get(workspaceId);
    if (tenant === undefined || this.#tenants.size < 1_000) return;
    const seat = tenant.seats.get(endpointId);
    if (seat !== undefined && busy(seat) === 0) tenant.seats.delete(endpointId);
    if (tenant.seats.size === 0) this.#tenants.delete(workspaceId);
  }
}

const aheadOf = (paceMs: number | null, limit: number): number =>
  paceMs === null ? 0 : Math.min(mostAhead * limit, Math.floor((limit * aheadMs) / Math.max(1, paceMs)));
