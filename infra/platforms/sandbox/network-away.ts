/** The call failed; whether it had an effect depends on when it was made. */
export class NetworkAway extends Error {
  override readonly name = 'NetworkAway';
}
