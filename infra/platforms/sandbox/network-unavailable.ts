/** The network did not answer. Before the boundary the call had no effect; after it the effect is unknown. */
export class NetworkUnavailable extends Error {
  override readonly name = 'NetworkUnavailable';
}
