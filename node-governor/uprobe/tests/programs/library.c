// SPDX-License-Identifier: Apache-2.0
// A hot function in a library.
long hot(long depth)
{
	volatile long frame = depth;
	if (depth > 0)
		frame += hot(depth - 1);
	return frame;
}
