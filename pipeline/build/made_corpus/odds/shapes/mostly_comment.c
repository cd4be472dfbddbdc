#include <stdint.h>

void calibrate(volatile uint32_t *registers);

// The calibration of the sensor proceeds in four phases.
// First the offset is measured while the shutter is closed;
// the mean of sixteen readings is kept in the second register.
// Then the reference lamp is switched on and left to settle,
// which takes between forty and ninety seconds when it is cold.
// Readings taken earlier drift and must be thrown away.
// The third phase sweeps the gain from low to high and stops
// at the first setting whose reading exceeds half of the scale.
// Finally the result is written twice, with its complement,
// so that a power failure in between can be recognised.
// Whoever changes the order of these phases should repeat the
// long test in the climate chamber, because the lamp is slower
// below five degrees and the manual of the maker is silent
// about that. The figures of the first series are on paper only.
// Two boards of that series have the registers the other way
// round; they can be told by the green solder mask.
