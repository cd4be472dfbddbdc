/* Nested as deeply as a code generator dares: sixty blocks, eighty calls. */
double smooth(double reading);

int classify_reading(double voltage, double current, double pressure, double humidity,
                     double altitude, double velocity, double heading, double torque) {
    int category = 0;
if (voltage > threshold_0) {
category += 1;
  if (current > threshold_1) {
  category += 2;
    if (pressure > threshold_2) {
    category += 3;
      if (humidity > threshold_3) {
      category += 4;
        if (altitude > threshold_4) {
        category += 5;
          if (velocity > threshold_5) {
          category += 6;
            if (heading > threshold_6) {
            category += 7;
              if (torque > threshold_7) {
              category += 8;
                if (voltage > threshold_8) {
                category += 9;
                  if (current > threshold_9) {
                  category += 10;
                    if (pressure > threshold_10) {
                    category += 11;
                      if (humidity > threshold_11) {
                      category += 12;
                        if (altitude > threshold_12) {
                        category += 13;
                          if (velocity > threshold_13) {
                          category += 14;
                            if (heading > threshold_14) {
                            category += 15;
                              if (torque > threshold_15) {
                              category += 16;
                                if (voltage > threshold_16) {
                                category += 17;
                                  if (current > threshold_17) {
                                  category += 18;
                                    if (pressure > threshold_18) {
                                    category += 19;
                                      if (humidity > threshold_19) {
                                      category += 20;
                                        if (altitude > threshold_20) {
                                        category += 21;
                                          if (velocity > threshold_21) {
                                          category += 22;
                                            if (heading > threshold_22) {
                                            category += 23;
                                              if (torque > threshold_23) {
                                              category += 24;
if (voltage > threshold_24) {
category += 25;
  if (current > threshold_25) {
  category += 26;
    if (pressure > threshold_26) {
    category += 27;
      if (humidity > threshold_27) {
      category += 28;
        if (altitude > threshold_28) {
        category += 29;
          if (velocity > threshold_29) {
          category += 30;
            if (heading > threshold_30) {
            category += 31;
              if (torque > threshold_31) {
              category += 32;
                if (voltage > threshold_32) {
                category += 33;
                  if (current > threshold_33) {
                  category += 34;
                    if (pressure > threshold_34) {
                    category += 35;
                      if (humidity > threshold_35) {
                      category += 36;
                        if (altitude > threshold_36) {
                        category += 37;
                          if (velocity > threshold_37) {
                          category += 38;
                            if (heading > threshold_38) {
                            category += 39;
                              if (torque > threshold_39) {
                              category += 40;
                                if (voltage > threshold_40) {
                                category += 41;
                                  if (current > threshold_41) {
                                  category += 42;
                                    if (pressure > threshold_42) {
                                    category += 43;
                                      if (humidity > threshold_43) {
                                      category += 44;
                                        if (altitude > threshold_44) {
                                        category += 45;
                                          if (velocity > threshold_45) {
                                          category += 46;
                                            if (heading > threshold_46) {
                                            category += 47;
                                              if (torque > threshold_47) {
                                              category += 48;
if (voltage > threshold_48) {
category += 49;
  if (current > threshold_49) {
  category += 50;
    if (pressure > threshold_50) {
    category += 51;
      if (humidity > threshold_51) {
      category += 52;
        if (altitude > threshold_52) {
        category += 53;
          if (velocity > threshold_53) {
          category += 54;
            if (heading > threshold_54) {
            category += 55;
              if (torque > threshold_55) {
              category += 56;
                if (voltage > threshold_56) {
                category += 57;
                  if (current > threshold_57) {
                  category += 58;
                    if (pressure > threshold_58) {
                    category += 59;
                      if (humidity > threshold_59) {
                      category += 60;
double smoothed_torque = smooth(smooth(smooth(smooth(smooth(smooth(smooth(smooth(
        smooth(smooth(smooth(smooth(smooth(smooth(smooth(smooth(
        smooth(smooth(smooth(smooth(smooth(smooth(smooth(smooth(
        smooth(smooth(smooth(smooth(smooth(smooth(smooth(smooth(
        smooth(smooth(smooth(smooth(smooth(smooth(smooth(smooth(
        smooth(smooth(smooth(smooth(smooth(smooth(smooth(smooth(
        smooth(smooth(smooth(smooth(smooth(smooth(smooth(smooth(
        smooth(smooth(smooth(smooth(smooth(smooth(smooth(smooth(
        smooth(smooth(smooth(smooth(smooth(smooth(smooth(smooth(
        smooth(smooth(smooth(smooth(smooth(smooth(smooth(smooth(
        torque))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))));
category += smoothed_torque > threshold_final;
                      }
                    }
                  }
                }
              }
            }
          }
        }
      }
    }
  }
}
                                              }
                                            }
                                          }
                                        }
                                      }
                                    }
                                  }
                                }
                              }
                            }
                          }
                        }
                      }
                    }
                  }
                }
              }
            }
          }
        }
      }
    }
  }
}
                                              }
                                            }
                                          }
                                        }
                                      }
                                    }
                                  }
                                }
                              }
                            }
                          }
                        }
                      }
                    }
                  }
                }
              }
            }
          }
        }
      }
    }
  }
}
    return category;
}
